# SPDX-License-Identifier: Apache-2.0
"""The NPU as a device, driven by its registers: outputs are those of the simulator, faults those of the hardware's."""
import device
import networks
import numpy as np
import pytest
import simulator
import suite
from device import BASEP, CMD, CONFIG, ID, PROT, QBASE, QREAD, QSIZE, R, RESET, STATUS

TARGETS = ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"]
NAMES = ["chain_i8_16", "conv_i8_4x6x70_40_k3x3_s11_d11", "depthwise_i8_9x8x24_k3x3_s11_d11", "add_i16_1", "table_i8",
         "average_i8_3x3_s2_p1", "matmul_i8", "transpose_conv_i8_9_k2_s2", "u85_gather_i8_3x10x16_7", "batch_linear_i8"]
STOP = 0xffff0000  # OP_STOP with all bits of its mask


@pytest.fixture(scope="module")
def program(library, workspace):
    """program(name, target) -> (device.Program, inputs, expected bytes by the simulator)"""
    def make(name, target, seed=0, **options):
        tosa = suite.prepare(workspace / "networks", name, networks.networks()[name])
        npz = suite.compiled(tosa, target)
        with np.load(tosa.parent / f"inputs_{seed}.npz") as given:
            inputs = list(given.values())
        return device.Program(library, npz, target, **options), inputs, simulator.Program(library, npz).run(inputs)
    return make


def bare(library, words, target="ethos-u55-128", size=None, at=0x21000000, **options):
    """A device with these commands in its memory, started."""
    memory = device.Memory(ram=(0x21000000, 4096, True), flash=(0x28000000, 4096, False))
    npu = device.Device(library, target, memory, **options)
    memory.put(0x21000000, np.array(words, np.uint32).tobytes())
    driver = device.Driver(npu)
    driver.start(at, 4 * len(words) if size is None else size, [0x28000000, 0x21000800])
    return npu, driver


@pytest.mark.parametrize("by_copies,deferred", [(False, False), (True, True)], ids=["pointers", "copies"])
@pytest.mark.parametrize("target", TARGETS)
def test_outputs_are_the_simulators(target, by_copies, deferred, program):
    ran = 0
    for name in NAMES:
        if target not in suite.targets_of(name):
            continue
        made, inputs, expected = program(name, target, by_copies=by_copies, deferred=deferred)
        driver = device.Driver(made.device)
        for _ in range(2):  # the second job finds its registers and its decoded weights from the first
            assert made.run_on_device(driver, inputs) == expected, name
        assert not made.device.reports and made.device.raised == 2 and made.device.line == 0
        assert made.device.borrowed == 0
        assert made.device[QREAD] == len(made.stream_bytes)
        ran += 1
    assert ran >= 9


@pytest.mark.parametrize("target", suite.TARGETS)
def test_identity(target, library, program):
    """CONFIG and ID are what Vela's programs ask for, of every product."""
    made, inputs, expected = program("chain_i8_16", target)
    assert made.device[CONFIG] == made.config
    driver = device.Driver(made.device)
    assert made.run_on_device(driver, inputs) == expected
    for offset, value in ((0xfe4, 0xb5), (0xff0, 0x0d), (0xffc, 0xb1), (0xfd0, 4)):
        assert made.device[offset] == value
    with pytest.raises(device.DriverError, match="made for"):
        driver.check(made.config ^ 1, made.id)
    with pytest.raises(device.DriverError, match="made for"):
        driver.check(made.config, made.id + (200 << 20))


def test_unknown_product(library):
    for target in ("ethos-u55-512", "ethos-u66-128", "ethos-u85-32"):
        with pytest.raises(simulator.Refused, match="there is no Ethos-U"):
            device.Device(library, target, device.Memory())


def test_reset_takes_time(library):
    npu = device.Device(library, "ethos-u55-128", device.Memory())
    assert npu[STATUS] == 0 and npu[CMD] == 0xC and npu[PROT] == 0
    npu[QSIZE] = 64
    npu[RESET] = 3
    npu[QSIZE] = 128  # ignored
    assert npu[ID] == 0 and npu[CONFIG] == 0
    assert npu[STATUS] == R["STATUS_RESETTING"] and npu.words() == "stopped"
    assert npu[ID] and npu[QSIZE] == 0 and npu[PROT] == 3 and npu[CMD] == 0xC
    assert [code for code, _ in npu.reports] == ["npu.resetting"]


def test_upper_address_words(library):
    for target, kept in (("ethos-u55-128", 0), ("ethos-u65-512", 0xff), ("ethos-u85-256", 0xff)):
        npu = device.Device(library, target, device.Memory())
        npu[QBASE + 4] = npu[BASEP + 12] = 0xffffffff
        assert npu[QBASE + 4] == npu[BASEP + 12] == kept
        assert npu[BASEP + 8] == 0


def test_stop_raises_the_interrupt(library):
    npu, driver = bare(library, [0x0080 << 16 | 1, 0x0001 << 16])  # OP_IRQ 0x80, OP_STOP 1
    assert npu.line == 1 and npu[STATUS] == 0x0081_0022
    assert npu.words() == "stopped; end of the commands reached; interrupt raised; interrupt history 0x0081"
    npu[CMD] = 0xC | R["CMD_CLEAR_IRQ"] | 0x0080 << 16
    assert npu.line == 0 and npu[STATUS] == 0x0001_0020 and npu[QREAD] == 8
    npu[CMD] = 0xD  # the end is reached
    assert npu.raised == 1 and npu.reports[-1][0] == "npu.end-reached"
    npu[QSIZE] = 8
    assert npu[STATUS] == 0x0001_0000
    npu[CMD] = 0xD
    assert npu.raised == 2 and driver.finish()


def test_deferred_runs_show_that_they_run(library):
    npu, driver = bare(library, [STOP], deferred=True)
    assert npu[STATUS] == R["STATUS_RUNNING"] and npu.line == 0 and npu.words() == "running"
    npu[QSIZE] = 8
    assert npu[QSIZE] == 4 and npu.reports[-1][0] == "npu.running"
    assert npu.work() == 1 and npu.work() == 0 and npu.line == 1 and driver.finish()
    u85, _ = bare(library, [STOP], "ethos-u85-256", deferred=True)
    u85[CMD] = R["CMD_STOP_REQUEST"]
    assert u85.work() == 1 and u85[STATUS] == 0 and u85[QREAD] == 0


def fails(npu, driver, bits, words, code, qread=0):
    """The fault's bits and words; it lasts until a reset, and until then nothing runs."""
    assert npu.line == 1 and npu[STATUS] & ~0xffff0000 == bits | 2, hex(npu[STATUS])
    assert words in npu.words() and npu.reports[-1][0] == code, (npu.words(), npu.reports)
    assert npu[QREAD] == qread
    assert not driver.finish() and npu.line == 0 and npu[STATUS] & bits == bits
    npu[CMD] = 0xD
    assert npu.reports[-1][0] == "npu.fault"
    driver.soft_reset()
    assert npu[STATUS] == 0 and npu.words() == "stopped"


PARSE = "command parse error"


@pytest.mark.parametrize("size,code", [(0, "npu.queue-size"), (6, "npu.queue-size"), (4, "ethosu.no-stop")])
def test_bad_size(size, code, library):
    npu, driver = bare(library, [0x10 << 16 | 0x10a, STOP], size=size)  # IFM_WIDTH0_M1, OP_STOP
    fails(npu, driver, R["STATUS_PARSE_ERROR"], PARSE, code, qread=4 if size == 4 else 0)


def test_words_after_stop_are_reported(library):
    npu, driver = bare(library, [STOP, 0])
    assert driver.finish() and npu.reports[-1][0] == "npu.after-stop" and npu[QREAD] == 4


def test_bad_command(library):
    for words, at in (([0x0007, STOP], 0), ([0x4000, 0, 0x10d, 0x3ff, STOP], 12), ([0x8000, STOP], 0)):
        npu, driver = bare(library, words)
        fails(npu, driver, R["STATUS_PARSE_ERROR"], PARSE, "ethosu.command", qread=at)


def test_commands_outside_of_memory(library):
    for at, size in ((0x10000000, 4), (0x21000000, 8192)):
        npu, driver = bare(library, [STOP], at=at, size=size)
        fails(npu, driver, R["STATUS_BUS_FAULT"] | R["STATUS_FAULT_INTERFACE"], "bus fault: a read of commands on port 1",
              "npu.bus")


def test_unaligned_addresses(library, program):
    npu, driver = bare(library, [0, STOP], at=0x21000004)
    fails(npu, driver, R["STATUS_PARSE_ERROR"], PARSE, "npu.alignment")
    made, inputs, _ = program("chain_i8_16", "ethos-u55-128")
    made.bases[1] += 8
    with pytest.raises(device.DriverError, match="BASEP1 is 0x21000008, not a multiple of 16"):
        made.run_on_device(device.Driver(made.device), inputs)


@pytest.mark.parametrize("by_copies", [False, True], ids=["pointers", "copies"])
@pytest.mark.parametrize("target", TARGETS)
def test_region_outside_of_memory(target, by_copies, program):
    """Each BASEP in turn: the fault names the channel and the port."""
    u85 = target == "ethos-u85-256"
    for region, channel, port in ((0, 3, 1), (1, 1, 0)):
        made, inputs, _ = program("conv_i8_4x6x70_40_k3x3_s11_d11", target, by_copies=by_copies)
        driver = device.Driver(made.device)
        for array, (_, _, at, offset) in zip(inputs, made.tensors("input"), strict=True):
            made.memory.put(made.bases[at] + offset, np.ascontiguousarray(array).tobytes())
        made.bases[region] = 0x90000000
        driver.start(0x70000000, len(made.stream_bytes), made.bases)
        made.device.work()
        status = made.device[STATUS]
        found = status >> R["STATUS_FAULT_CHANNEL_SHIFT"] & 15
        assert status & R["STATUS_BUS_FAULT"] and found in ((channel, 2) if region == 0 else (1, 8)), hex(status)
        assert bool(status & R["STATUS_FAULT_INTERFACE"]) == bool(port)
        assert ("external" if u85 and port else "SRAM" if u85 else f"port {port}") in made.device.words()
        code, text = made.device.reports[-1]
        assert code == "ethosu.out-of-region" and f"BASEP{region} is 0x90000000" in text
        assert made.device[QREAD] not in (0, len(made.stream_bytes)) and not driver.finish()


@pytest.mark.parametrize("by_copies", [False, True], ids=["pointers", "copies"])
def test_result_in_flash(by_copies, program):
    made, inputs, _ = program("conv_i8_4x6x70_40_k3x3_s11_d11", "ethos-u55-128", by_copies=by_copies)
    made.memory.blocks[made.RAM] = (made.memory.blocks[made.RAM][0], False)
    with pytest.raises(device.DriverError, match="bus fault: an OFM write on port 0"):
        made.run_on_device(device.Driver(made.device), inputs)


def test_damaged_weights(program):
    """A weight decoder fault on U55 and U65; U85's STATUS has no such bit."""
    for target, words in (("ethos-u55-128", "weight decoder fault"), ("ethos-u65-512", "weight decoder fault"),
                          ("ethos-u85-256", PARSE)):
        made, inputs, _ = program("conv_i8_4x6x70_40_k3x3_s11_d11", target)
        made.memory.put(made.FLASH, b"\xff" * len(made.constants))
        with pytest.raises(device.DriverError, match=words):
            made.run_on_device(device.Driver(made.device), inputs)


def test_branch_into_the_middle(library):
    npu, driver = bare(library, [0x4000 | 0x100, 4, STOP], "ethos-u85-256")  # always, to its own second word
    fails(npu, driver, R["STATUS_BRANCH_FAULT"], "branch fault", "ethosu.branch")


def test_what_the_simulator_refuses_is_no_result(library):
    npu, driver = bare(library, [2, STOP])  # OP_CONV with registers that no command wrote
    fails(npu, driver, R["STATUS_PARSE_ERROR"], PARSE, "ethosu.reset-value")


@pytest.mark.parametrize("target", TARGETS)
def test_counters(target, program):
    made, inputs, _ = program("chain_i8_16", target)
    npu, driver = made.device, device.Driver(made.device)
    pmu = lambda name: npu.pmu + R[name]
    cycles = lambda: npu[pmu("PMCCNTR")] | npu[pmu("PMCCNTR_HI")] << 32
    counters = 8 if "u85" in target else 4
    assert npu[pmu("PMCR")] == counters << R["PMCR_COUNTERS_SHIFT"]
    made.run_on_device(driver, inputs)
    assert cycles() == 0  # off
    npu[pmu("PMCR")] = R["PMCR_ENABLE"] | R["PMCR_RESET_CYCLES"] | R["PMCR_RESET_EVENTS"]
    for i, event in enumerate((R["EVENT_CYCLE"], R["EVENT_NPU_ACTIVE"], R["EVENT_MAC_ACTIVE"], 128)):
        npu[pmu("PMEVTYPER") + 4 * i] = event
    npu[pmu("PMCNTENSET")] = R["PMU_CYCLES"] | 0b1101
    made.run_on_device(driver, inputs)
    once = cycles()
    assert once > 0
    made.run_on_device(driver, inputs)
    assert cycles() == 2 * once
    events = [npu[pmu("PMEVCNTR") + 4 * i] for i in range(4)]
    assert events[0] == 2 * once and events[1] == 0 and 0 < events[2] <= 2 * once and events[3] == 0
    npu[pmu("PMCNTENCLR")] = R["PMU_CYCLES"]
    made.run_on_device(driver, inputs)
    assert cycles() == 2 * once and npu[pmu("PMCNTENSET")] == 0b1101
    # 48 bits and their overflow, with its interrupt.
    npu[pmu("PMCCNTR")], npu[pmu("PMCCNTR_HI")] = 0xffffffff, 0xfffff
    assert cycles() == 2**48 - 1
    npu[pmu("PMCNTENSET")] = npu[pmu("PMINTSET")] = R["PMU_CYCLES"]
    made.run_on_device(driver, inputs)
    assert cycles() == once - 1 and npu[pmu("PMOVSSET")] == R["PMU_CYCLES"]
    npu[pmu("PMOVSCLR")] = R["PMU_CYCLES"]
    assert npu[pmu("PMOVSSET")] == 0
    npu[pmu("PMCR")] = 0
    made.run_on_device(driver, inputs)
    assert cycles() == once - 1
    assert npu[pmu("PMEVTYPER") + 4 * counters] == 0


def test_counted_cycles_are_a_floor(library, program):
    """Multiplications of one convolution over the MACs per cycle."""
    made, inputs, _ = program("conv_i8_4x6x70_40_k3x3_s11_d11", "ethos-u55-128")
    npu = made.device
    driver = device.Driver(npu)
    npu[npu.pmu + R["PMCR"]] = R["PMCR_ENABLE"]
    npu[npu.pmu + R["PMCNTENSET"]] = R["PMU_CYCLES"]
    made.run_on_device(driver, inputs)
    macs = 4 * 6 * 40 * 3 * 3 * 70
    assert macs / 128 <= npu[npu.pmu + R["PMCCNTR"]] < macs / 128 + 20


def test_status_in_words(library):
    npu = device.Device(library, "ethos-u65-512", device.Memory())
    for status, words in ((0, "stopped"), (1, "running"), (8, "resetting"), (0x22, "stopped; end of the commands reached; interrupt raised"),
                          (0x9806, "stopped; bus fault: a DMA write on port 1; interrupt raised"),
                          (0x180, "stopped; weight decoder fault; ECC fault of the internal memory"),
                          (0x40, "stopped; interrupt of the PMU raised"), (0xabcd0010, f"stopped; {PARSE}; interrupt history 0xabcd")):
        assert npu.words(status) == words
    assert device.Device(library, "ethos-u85-256", device.Memory()).words(0x280) == "stopped; branch fault"
