# SPDX-License-Identifier: Apache-2.0
"""Vela's streams in the simulator give every byte that tosa_reference_model gives; garbage gives an error."""
import networks
import numpy as np
import pytest
import simulator
import suite
import toolchain
import tosa_sample

pytestmark = pytest.mark.by_turns(2)

NAMES = list(networks.networks())


def pytest_generate_tests(metafunc):
    """Each network on one target in turn, the conformance sample on two; with --all-models on all of them."""
    every = metafunc.config.getoption("--all-models")
    if metafunc.function is test_conformance_sample:
        metafunc.parametrize("target", suite.TARGETS if every else ["ethos-u55-128", "ethos-u85-256"])
    if metafunc.function is test_network:
        metafunc.parametrize("name,target", [(name, target) for i, name in enumerate(NAMES)
                                             for j, target in enumerate(suite.targets_of(name))
                                             if every or j == i % len(suite.targets_of(name))])


def test_network(name, target, library, workspace):
    tosa = suite.prepare(workspace / "networks", name, networks.networks()[name])
    verdict, detail = suite.judge(library, tosa, target)
    if verdict == "vela":
        pytest.skip("Vela compiles no program for it")
    undecidable = "unequal_whole" in name and "u85" not in target  # docs/developer/ethosu-simulator.md
    assert verdict == ("refused" if undecidable else "equal"), detail


@pytest.mark.parametrize("name", ["conv_i8_7x9x16_24_k3x3_s11_d11", "chain_i8_16", "depthwise_i8_9x8x24_k3x3_s11_d11", "chain_i16_16"])
@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_plain_loops_agree(name, target, library, workspace):
    tosa = suite.prepare(workspace / "networks", name, networks.networks()[name])
    verdict, detail = suite.judge(library, tosa, target, plain_loops=True)
    assert verdict == "equal", detail


def test_conformance_sample(target, library, workspace, request):
    """Differences and refusals, except those that docs/developer/ethosu-simulator.md lists."""
    count = 8 if request.config.getoption("--all-models") else 1
    known = {} if "u85" in target else {"resize": "different", "arithmetic_right_shift": "refused"}
    if target == "ethos-u65-512":
        known["conv3d"] = "refused"
    wrong, equal = [], 0
    for test in tosa_sample.generate(workspace / "conformance", count):
        verdict, detail = tosa_sample.judge(library, test, target)
        equal += verdict == "equal"
        listed = any(test.parent.name.startswith(name) and verdict == expected for name, expected in known.items())
        if verdict in ("different", "refused") and not listed:
            wrong.append(f"{verdict} {test.name}: {detail}")
    assert not wrong, "\n".join(wrong)
    assert equal > 30


@pytest.fixture(scope="module")
def small(library, workspace):
    tosa = suite.prepare(workspace / "networks", "chain_i8_16", networks.networks()["chain_i8_16"])
    return suite.compiled(tosa, "ethos-u55-128"), toolchain.random_inputs(tosa)


def test_trace_names_every_operation(small, library):
    program = simulator.Program(library, small[0])
    first = program.run(small[1], trace=True)
    lines = program.lines
    info, listing = program.stream.describe()
    assert len(lines) == info.operations
    assert sum("CONV" in line for line in lines) >= 4 and all("sum" in line for line in lines if "CONV" in line)
    assert first == program.run(small[1], trace=True) and lines == program.lines
    assert len(listing) >= info.operations


def test_regions_that_are_too_small(small, library):
    program = simulator.Program(library, small[0])
    info, _ = program.stream.describe()
    for region in range(8):
        if not info.region_bytes[region] or region == 0:
            continue
        memory = program.regions()
        memory[region] = memory[region][:int(info.region_bytes[region]) - 1]
        with pytest.raises(simulator.Refused) as why:
            program.stream.run(memory)
        assert why.value.code == "ethosu.out-of-region" and "byte 0x" in why.value.message


def test_fuzzed_streams_end_in_an_error(small, library):
    """Seeded: single words of a good stream replaced by garbage; weights and commands cut."""
    program = simulator.Program(library, small[0])
    rng = np.random.default_rng(5)
    words = np.frombuffer(program.commands[:len(program.commands) // 4 * 4], np.uint32)
    outcomes = {"opened": 0, "refused": 0}
    for _ in range(1500):
        changed = words.copy()
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(len(changed))
            changed[at] = rng.choice([rng.integers(2 ** 32, dtype=np.uint32), changed[at] ^ np.uint32(1 << rng.integers(32)), np.uint32(0xffffffff), np.uint32(0)])
        constants = bytearray(program.constants)
        if rng.random() < 0.5:
            constants[rng.integers(len(constants))] ^= 1 << int(rng.integers(8))
        try:
            stream = simulator.Stream(library, changed.tobytes(), bytes(constants), most_work=2e8)
            stream.describe(registers=True)
            stream.run(program.regions())
            outcomes["opened"] += 1
        except simulator.Refused as why:
            outcomes["refused"] += 1
            assert why.code.startswith("ethosu.") and why.message, why
            assert why.code != "internal", why
    assert outcomes["refused"] > 200 and outcomes["opened"] > 0, outcomes


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_a_sum_beyond_the_accumulator_is_refused(target, library, tmp_path):
    """TOSA calls it unpredictable, and what the hardware makes of it is not known."""
    n = networks.Network("wide sum")
    x = n.rescale(n.input((1, 4, 4, 8)), networks.I32, 2.0 ** 20)
    total = n.add(x, n.constant(np.full((1, 1, 1, 8), 2 ** 31 - 1), networks.I32))
    (tmp_path / "net.tosa").write_bytes(n.finish(n.rescale(total, networks.I8, 2.0 ** -24)))
    program = simulator.Program(library, toolchain.vela(tmp_path / "net.tosa", target, tmp_path))
    program.run([np.full((1, 4, 4, 8), -1, np.int8)])
    with pytest.raises(simulator.Refused) as refused:
        program.run([np.full((1, 4, 4, 8), 1, np.int8)])
    assert refused.value.code == "ethosu.overflow"
