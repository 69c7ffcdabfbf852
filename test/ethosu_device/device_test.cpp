// SPDX-License-Identifier: Apache-2.0
// The device by its C interface: arguments, registers, and that no use of the registers makes it crash. What it
// computes: test/ethosu/test_device.py.
#include "tosaic/ethosu_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tosaic::ethosu_device {
namespace {

// 64 kB of memory at `base`, with pointers or with copies.
struct Board {
  static constexpr std::uint64_t base = 0x21000000;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 16);
  std::string code;
  int raised = 0, borrowed = 0;
  tosaic_ethosu_device* device = nullptr;
  Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { tosaic_ethosu_device_close(device); }

  std::uint8_t* at(std::uint64_t address, std::uint64_t bytes) {
    const bool inside = address >= base && address - base <= memory.size() && bytes <= memory.size() - (address - base);
    return inside ? memory.data() + (address - base) : nullptr;
  }
  static Board& of(void* user) { return *static_cast<Board*>(user); }

  tosaic_ethosu_host host(bool copies) {
    tosaic_ethosu_host h{};
    h.user = this;
    if (!copies)
      h.memory = [](void* user, std::uint64_t address, std::uint64_t* bytes, int) -> void* {
        void* const found = of(user).at(address, 1);
        if (found) *bytes = std::min(*bytes, base + of(user).memory.size() - address), ++of(user).borrowed;
        return found;
      };
    h.release = [](void* user, std::uint64_t, void*, std::uint64_t, int) { --of(user).borrowed; };
    h.read = [](void* user, std::uint64_t address, void* to, std::uint64_t bytes) {
      const void* const found = of(user).at(address, bytes);
      if (found) std::memcpy(to, found, bytes);
      return found ? 0 : 1;
    };
    h.write = [](void* user, std::uint64_t address, const void* from, std::uint64_t bytes) {
      void* const found = of(user).at(address, bytes);
      if (found) std::memcpy(found, from, bytes);
      return found ? 0 : 1;
    };
    // As an interrupt handler would, at once.
    h.interrupt = [](void* user, int level) {
      of(user).raised += level;
      if (level) of(user).write(TOSAIC_ETHOSU_CMD, 0xc | TOSAIC_ETHOSU_CMD_CLEAR_IRQ);
    };
    h.report = [](void* user, const char* said, const char*) { of(user).code = said; };
    return h;
  }
  void open(std::uint32_t product, std::uint32_t macs, bool copies = false) {
    tosaic_ethosu_device_options options{};
    options.struct_bytes = sizeof options;
    options.product = product;
    options.macs = macs;
    options.threads = 1;
    options.most_work = 1e7;
    const tosaic_ethosu_host h = host(copies);
    ASSERT_EQ(tosaic_ethosu_device_open(&options, &h, &device, nullptr), TOSAIC_ETHOSU_OK);
  }
  std::uint32_t read(std::uint32_t offset) { return tosaic_ethosu_device_read(device, offset); }
  void write(std::uint32_t offset, std::uint32_t value) { tosaic_ethosu_device_write(device, offset, value); }
  void run(std::uint32_t bytes) {
    write(TOSAIC_ETHOSU_RESET, 0);
    ASSERT_EQ(read(TOSAIC_ETHOSU_STATUS), TOSAIC_ETHOSU_STATUS_RESETTING);
    write(TOSAIC_ETHOSU_QBASE, base);
    write(TOSAIC_ETHOSU_QSIZE, bytes);
    for (std::uint32_t i = 0; i < 8; ++i) write(TOSAIC_ETHOSU_BASEP + 8 * i, base + 0x1000 * (i + 1));
    write(TOSAIC_ETHOSU_CMD, TOSAIC_ETHOSU_CMD_RUN);
  }
};

TEST(Device, ChecksItsArguments) {
  Board board;
  tosaic_ethosu_device_options options{};
  tosaic_ethosu_host host = board.host(false);
  tosaic_ethosu_error why{};
  options.product = 55;
  options.macs = 128;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  options.struct_bytes = sizeof options;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, nullptr, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  EXPECT_EQ(tosaic_ethosu_device_open(nullptr, &host, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, nullptr, &why), TOSAIC_ETHOSU_ARGUMENT);
  host.memory = nullptr;
  host.write = nullptr;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  EXPECT_STREQ(why.message, "the host gives no access to memory");
  host = board.host(false);
  options.macs = 100;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  EXPECT_STREQ(why.message, "there is no Ethos-U55 with 100 MACs");
  options.macs = 128;
  options.config = 0x30000007;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, &board.device, &why), TOSAIC_ETHOSU_ARGUMENT);
  EXPECT_STREQ(why.code, "ethosu.unknown-product");
  options.config = 0x00001807;
  options.id = 0x10000001;
  EXPECT_EQ(tosaic_ethosu_device_open(&options, &host, &board.device, nullptr), TOSAIC_ETHOSU_OK);
  EXPECT_EQ(board.read(TOSAIC_ETHOSU_ID), 0x10000001u);
  tosaic_ethosu_device_close(nullptr);
}

TEST(Device, AnInterruptHandlerUsesIt) {
  for (const bool copies : {false, true}) {
    Board board;
    board.open(85, 256, copies);
    const std::uint32_t commands[] = {0x00010001, 0x00020001, 0x00040000};  // OP_IRQ 1, OP_IRQ 2, OP_STOP 4
    std::memcpy(board.memory.data(), commands, sizeof commands);
    board.run(sizeof commands);
    EXPECT_EQ(board.raised, 3);
    EXPECT_EQ(board.read(TOSAIC_ETHOSU_STATUS), 7u << 16 | TOSAIC_ETHOSU_STATUS_END_REACHED);
    EXPECT_EQ(board.borrowed, 0);
  }
}

TEST(Device, TheResetLineEndsItAll) {
  Board board;
  board.open(65, 256);
  board.run(6);
  EXPECT_EQ(board.code, "npu.queue-size");
  EXPECT_TRUE(board.read(TOSAIC_ETHOSU_STATUS) & TOSAIC_ETHOSU_STATUS_PARSE_ERROR);
  tosaic_ethosu_device_reset(board.device);
  EXPECT_EQ(board.read(TOSAIC_ETHOSU_STATUS), 0u);
  EXPECT_EQ(board.read(TOSAIC_ETHOSU_QSIZE), 0u);
}

TEST(Device, SurvivesAnyUseOfItsRegisters) {
  std::mt19937 random(7);
  const std::pair<std::uint32_t, std::uint32_t> products[] = {{55, 128}, {65, 512}, {85, 1024}};
  for (const auto& [product, macs] : products) {
    Board board;
    board.open(product, macs, product == 65);
    for (auto& byte : board.memory) byte = static_cast<std::uint8_t>(random());
    for (int i = 0; i < 20000; ++i) {
      const std::uint32_t offset = random() % 8 ? random() % 0x1400 & ~3u : random();
      if (random() % 2) board.write(offset, random());
      board.read(random() % 4 ? offset : random());
    }
    EXPECT_EQ(board.borrowed, 0);
  }
}

// Operations with registers that are garbage: a result or a fault, and always an end.
TEST(Device, SurvivesAnyCommands) {
  std::mt19937 random(11);
  const std::uint32_t operations[] = {2, 3, 5, 6, 7, 0x10, 1, 0x11};
  const std::pair<std::uint32_t, std::uint32_t> products[] = {{55, 128}, {65, 512}, {85, 256}};
  int ended = 0, failed = 0;
  for (const auto& [product, macs] : products) {
    Board board;
    board.open(product, macs, product == 55);
    for (int round = 0; round < 300; ++round) {
      std::vector<std::uint32_t> words;
      for (std::uint32_t opcode = 0x100; opcode < 0x190; ++opcode)
        if (random() % 8) words.push_back(opcode | (random() % 4 ? random() % 16 : random()) << 16);
      for (std::uint32_t opcode = 0; opcode < 0x98; ++opcode)
        if (random() % 8) words.push_back(0x4000 | opcode), words.push_back(random() % 4096 & ~15u);
      for (int n = 0; n < 3; ++n) words.push_back(operations[random() % 8]);
      words.push_back(0);
      std::memcpy(board.memory.data(), words.data(), 4 * words.size());
      board.run(static_cast<std::uint32_t>(4 * words.size()));
      const std::uint32_t status = board.read(TOSAIC_ETHOSU_STATUS);
      EXPECT_FALSE(status & (TOSAIC_ETHOSU_STATUS_RUNNING | TOSAIC_ETHOSU_STATUS_IRQ));
      const bool end = status & TOSAIC_ETHOSU_STATUS_END_REACHED, fault = status & TOSAIC_ETHOSU_STATUS_FAULTS;
      EXPECT_NE(end, fault) << std::hex << status;
      ended += end, failed += fault;
    }
  }
  EXPECT_GT(ended + failed, 800);
}

TEST(StatusText, FitsTheRoom) {
  char text[32];
  const std::size_t length = tosaic_ethosu_status_text(55, 0x22, nullptr, 0);
  EXPECT_EQ(length, std::strlen("stopped; end of the commands reached; interrupt raised"));
  for (std::size_t room = 1; room < sizeof text; ++room) {
    std::memset(text, 'x', sizeof text);
    EXPECT_EQ(tosaic_ethosu_status_text(55, 0x22, text, room), length);
    EXPECT_EQ(std::strlen(text), room - 1);
    EXPECT_EQ(text[room], 'x');
  }
  char wide[200];
  tosaic_ethosu_status_text(85, 0xffffffff, wide, sizeof wide);
  EXPECT_NE(std::strstr(wide, "branch fault"), nullptr);
}

}  // namespace
}  // namespace tosaic::ethosu_device
