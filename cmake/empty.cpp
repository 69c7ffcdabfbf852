// SPDX-License-Identifier: Apache-2.0
// Stands in for a library whose folder has no source file yet.
