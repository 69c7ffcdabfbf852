# SPDX-License-Identifier: Apache-2.0
"""What a system gives (memory, files, processes, threads, time, dynamic libraries) is asked for in src/base/system and
nowhere else: so the same sources run where there is none. Mutexes, atomics and std::filesystem are the language's."""
import pathlib
import re

HOME = "src/base/system/"
HEADER = re.compile(r"^\s*#\s*include\s*<(sys/[^>]*|unistd\.h|fcntl\.h|dlfcn\.h|link\.h|pthread\.h|signal\.h|csignal|spawn\.h|"
                    r"poll\.h|dirent\.h|malloc\.h|sched\.h|time\.h|ctime|thread|future|condition_variable|fstream|"
                    r"windows\.h|io\.h)>", re.M)
CALL = re.compile(r"std::(?:this_thread|thread|jthread|async)\b|\b(?:steady|system|high_resolution)_clock\b|"
                  r"\b(?:secure_)?getenv\s*\(|\b(?:un)?setenv\s*\(|\bdl(?:open|sym)\s*\(|::(?:mmap|fork|vfork|getpid)\s*\(|"
                  r"\bthread_local\b")


def offences(root):
    said = []
    for path in sorted(pathlib.Path(root, "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".cpp", ".h", ".inc"} or name.startswith(HOME):
            continue
        text = path.read_text()
        code = re.sub(r"//[^\n]*", "", text)
        for found in [*HEADER.finditer(text), *CALL.finditer(code)]:
            line = (text if found.re is HEADER else code).count("\n", 0, found.start(1) if found.re is HEADER else found.start()) + 1
            said.append(f"{name}:{line}: {found.group().strip()}: the system is asked in {HOME} alone")
    return said
