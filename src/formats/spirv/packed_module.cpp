// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/packed_module.h"

#include <algorithm>

namespace tosaic::spirv {
namespace {

constexpr std::size_t header_words = 5;
constexpr Word most_in_head = 15;

// What stood at each place of the last instruction of each opcode. Opcodes and places that are far apart may share one.
class Before {
 public:
  Before() : words_(kinds * positions) {}
  Word& at(Word opcode, Word position) {
    return words_[opcode % kinds * positions + std::min(position, positions - 1)];
  }

 private:
  static constexpr Word kinds = 512, positions = 8;
  std::vector<Word> words_;
};

Word folded(Word difference) { return difference << 1 ^ (difference >> 31 ? ~Word{0} : 0); }
Word unfolded(Word number) { return number >> 1 ^ (number & 1 ? ~Word{0} : 0); }

void put(std::vector<std::byte>& bytes, Word number) {
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<std::byte>(number | 0x80));
  bytes.push_back(static_cast<std::byte>(number));
}

struct Numbers {
  std::span<const std::byte> left;
  bool whole = true;

  Word next() {
    Word number = 0;
    for (int shift = 0; shift < 32 && !left.empty(); shift += 7) {
      const Word byte = std::to_integer<Word>(left.front());
      left = left.subspan(1);
      number |= (byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    whole = false;
    return 0;
  }
};

}  // namespace

std::optional<std::vector<std::byte>> pack(std::span<const Word> words) {
  if (words.size() < header_words || words[0] != magic) return {};
  std::vector<std::byte> bytes;
  bytes.reserve(words.size() * 2);
  for (std::size_t i = 1; i < header_words; ++i) put(bytes, words[i]);
  Before before;
  for (std::size_t at = header_words; at < words.size();) {
    const Word opcode = words[at] & 0xffff, length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return {};
    const Word count = length - 1;
    put(bytes, opcode << 4 | std::min(count, most_in_head));
    if (count >= most_in_head) put(bytes, count - most_in_head);
    for (Word i = 0; i < count; ++i) {
      Word& last = before.at(opcode, i);
      put(bytes, folded(words[at + 1 + i] - last));
      last = words[at + 1 + i];
    }
    at += length;
  }
  return bytes;
}

std::optional<std::vector<Word>> unpack(std::span<const std::byte> bytes) {
  Numbers numbers{bytes};
  std::vector<Word> words{magic};
  words.reserve(bytes.size() + 1);
  for (std::size_t i = 1; i < header_words; ++i) words.push_back(numbers.next());
  Before before;
  while (numbers.whole && !numbers.left.empty()) {
    const Word head = numbers.next(), opcode = head >> 4;
    std::uint64_t count = head & most_in_head;
    if (count == most_in_head) count += numbers.next();
    if (opcode > 0xffff || count + 1 > 0xffff || count > numbers.left.size()) return {};
    words.push_back(static_cast<Word>(count + 1) << 16 | opcode);
    for (Word i = 0; i < count; ++i) {
      Word& last = before.at(opcode, i);
      words.push_back(last += unfolded(numbers.next()));
    }
  }
  if (!numbers.whole) return {};
  return words;
}

}  // namespace tosaic::spirv
