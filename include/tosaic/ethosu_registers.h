/* SPDX-License-Identifier: Apache-2.0
 * The registers of an Ethos-U as software sees them: offsets from the base address, and the bits of those that say how
 * a run went. Plain C without any dependency: for firmware as well as for the model of the device (ethosu_device.h).
 */
#ifndef TOSAIC_ETHOSU_REGISTERS_H
#define TOSAIC_ETHOSU_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TOSAIC_ETHOSU_API
#if defined(_WIN32) && defined(TOSAIC_EXPORTS)
#define TOSAIC_ETHOSU_API __declspec(dllexport)
#elif defined(_WIN32)
#define TOSAIC_ETHOSU_API
#else
#define TOSAIC_ETHOSU_API __attribute__((visibility("default")))
#endif
#endif

enum tosaic_ethosu_register {
  TOSAIC_ETHOSU_ID = 0x000,
  TOSAIC_ETHOSU_STATUS = 0x004,
  TOSAIC_ETHOSU_CMD = 0x008,
  TOSAIC_ETHOSU_RESET = 0x00c,
  TOSAIC_ETHOSU_QBASE = 0x010, /* where the commands lie; the upper 8 bits follow, on U65 and U85 */
  TOSAIC_ETHOSU_QBASE_HI = 0x014,
  TOSAIC_ETHOSU_QREAD = 0x018, /* the command under execution, in bytes from QBASE */
  TOSAIC_ETHOSU_QCONFIG = 0x01c,
  TOSAIC_ETHOSU_QSIZE = 0x020, /* of the commands, in bytes */
  TOSAIC_ETHOSU_PROT = 0x024,
  TOSAIC_ETHOSU_CONFIG = 0x028,
  TOSAIC_ETHOSU_LOCK = 0x02c,       /* U55, U65 */
  TOSAIC_ETHOSU_POWER_CTRL = 0x038, /* U85 */
  TOSAIC_ETHOSU_REGIONCFG = 0x03c,
  TOSAIC_ETHOSU_AXI_LIMIT0 = 0x040, /* four of them; on U85 MEM_ATTR0 to 3 */
  TOSAIC_ETHOSU_AXI_SRAM = 0x050,   /* U85 */
  TOSAIC_ETHOSU_AXI_EXT = 0x054,    /* U85 */
  TOSAIC_ETHOSU_BASEP = 0x080,      /* eight pairs: lower 32 bits, upper 8 bits */
  TOSAIC_ETHOSU_CURRENT_QREAD = 0x27c,
  TOSAIC_ETHOSU_PMU = 0x180,     /* U55, U65: the registers below count from here */
  TOSAIC_ETHOSU_PMU_U85 = 0x1180 /* U85 */
};

/* From TOSAIC_ETHOSU_PMU. */
enum tosaic_ethosu_pmu_register {
  TOSAIC_ETHOSU_PMCR = 0x00,
  TOSAIC_ETHOSU_PMCNTENSET = 0x04,
  TOSAIC_ETHOSU_PMCNTENCLR = 0x08,
  TOSAIC_ETHOSU_PMOVSSET = 0x0c,
  TOSAIC_ETHOSU_PMOVSCLR = 0x10,
  TOSAIC_ETHOSU_PMINTSET = 0x14,
  TOSAIC_ETHOSU_PMINTCLR = 0x18,
  TOSAIC_ETHOSU_PMCCNTR = 0x20, /* 48 bits in two registers */
  TOSAIC_ETHOSU_PMCCNTR_HI = 0x24,
  TOSAIC_ETHOSU_PMCCNTR_CFG = 0x28,
  TOSAIC_ETHOSU_PMCAXI_CHAN = 0x2c,
  TOSAIC_ETHOSU_PMEVCNTR = 0x180, /* four event counters, eight on U85 */
  TOSAIC_ETHOSU_PMEVTYPER = 0x200
};

enum tosaic_ethosu_status_bits {
  TOSAIC_ETHOSU_STATUS_RUNNING = 1 << 0,
  TOSAIC_ETHOSU_STATUS_IRQ = 1 << 1,
  TOSAIC_ETHOSU_STATUS_BUS_FAULT = 1 << 2,
  TOSAIC_ETHOSU_STATUS_RESETTING = 1 << 3, /* as long as it is set, all other registers are 0 and ignore writes */
  TOSAIC_ETHOSU_STATUS_PARSE_ERROR = 1 << 4,
  TOSAIC_ETHOSU_STATUS_END_REACHED = 1 << 5,
  TOSAIC_ETHOSU_STATUS_PMU_IRQ = 1 << 6,
  TOSAIC_ETHOSU_STATUS_WEIGHT_FAULT = 1 << 7, /* U55, U65 */
  TOSAIC_ETHOSU_STATUS_ECC_FAULT = 1 << 8,
  TOSAIC_ETHOSU_STATUS_BRANCH_FAULT = 1 << 9, /* U85 */
  TOSAIC_ETHOSU_STATUS_FAULT_INTERFACE = 1 << 11,
  TOSAIC_ETHOSU_STATUS_FAULT_CHANNEL_SHIFT = 12, /* 4 bits */
  TOSAIC_ETHOSU_STATUS_IRQ_HISTORY_SHIFT = 16    /* 16 bits: masks of the STOP and IRQ commands so far */
};
/* What only a reset clears. */
#define TOSAIC_ETHOSU_STATUS_FAULTS 0x394u

enum tosaic_ethosu_cmd_bits {
  TOSAIC_ETHOSU_CMD_RUN = 1 << 0,
  TOSAIC_ETHOSU_CMD_CLEAR_IRQ = 1 << 1,
  TOSAIC_ETHOSU_CMD_CLOCK_OFF_ALLOWED = 1 << 2,
  TOSAIC_ETHOSU_CMD_POWER_OFF_ALLOWED = 1 << 3,
  TOSAIC_ETHOSU_CMD_STOP_REQUEST = 1 << 4,       /* U85 */
  TOSAIC_ETHOSU_CMD_CLEAR_IRQ_HISTORY_SHIFT = 16 /* 16 bits */
};

enum tosaic_ethosu_pmcr_bits {
  TOSAIC_ETHOSU_PMCR_ENABLE = 1 << 0,
  TOSAIC_ETHOSU_PMCR_RESET_EVENTS = 1 << 1,
  TOSAIC_ETHOSU_PMCR_RESET_CYCLES = 1 << 2,
  TOSAIC_ETHOSU_PMCR_MASKED_BY_COMMANDS = 1 << 3,
  TOSAIC_ETHOSU_PMCR_COUNTERS_SHIFT = 11 /* 5 bits: how many event counters there are */
};
/* Of PMCNTENSET, PMOVSSET and PMINTSET: bit n is event counter n, and this is the cycle counter. */
#define TOSAIC_ETHOSU_PMU_CYCLES 0x80000000u

enum tosaic_ethosu_pmu_event {
  TOSAIC_ETHOSU_EVENT_NONE = 0,
  TOSAIC_ETHOSU_EVENT_CYCLE = 17,
  TOSAIC_ETHOSU_EVENT_NPU_ACTIVE = 35,
  TOSAIC_ETHOSU_EVENT_MAC_ACTIVE = 48
};

/* The STATUS register in words: "stopped; bus fault: an IFM read on port 1; interrupt raised". `product` is 55, 65
 * or 85. Writes at most `size` bytes with the ending zero, and returns how long the whole text is. No heap, no library
 * calls. */
TOSAIC_ETHOSU_API size_t tosaic_ethosu_status_text(uint32_t product, uint32_t status, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* TOSAIC_ETHOSU_REGISTERS_H */
