# SPDX-License-Identifier: Apache-2.0
"""Models in the builds of others: cmake/tosaic_model.cmake, and the module for Zephyr with stand-ins for Zephyr itself."""
import pathlib
import shutil
import subprocess

import kconfiglib
import yaml

from test_firmware import PEERS

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
CMAKE = "/usr/bin/cmake" if pathlib.Path("/usr/bin/cmake").exists() else "cmake"  # not a wrapper of pyenv's
ZEPHYR = """
add_library(zephyr_interface INTERFACE)
target_include_directories(zephyr_interface INTERFACE ${CMAKE_CURRENT_LIST_DIR})
add_executable(app)
target_link_libraries(app PRIVATE zephyr_interface)
set(CONFIG_TOSAIC y)
add_subdirectory(%s ${CMAKE_BINARY_DIR}/modules/tosaic)
"""
HEADERS = {"kernel.h": "#include <stdint.h>\n#include <time.h>\nstatic inline uint32_t k_cycle_get_32(void) { return (uint32_t)clock(); }\n",
           "sys/printk.h": "#include <stdio.h>\n#define printk printf\n"}


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=PEERS)
    assert (done.returncode == 0) == (status == 0), done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_project_of_cmake(tosaic, tmp_path):
    shutil.copy(DIGITS / "digits.pt2", tmp_path / "a-net.pt2")
    shutil.copy(DIGITS / "digits_samples.npz", tmp_path)
    (tmp_path / "main.c").write_text('#include "a_net.h"\nint main(void) { return A_NET_RUN_IN0_ELEMENTS - 64; }\n')
    project = tmp_path / "CMakeLists.txt"
    text = (f"cmake_minimum_required(VERSION 3.20)\nproject(net C)\ninclude({ROOT}/cmake/tosaic_model.cmake)\n"
            "tosaic_model(a-net.pt2 TARGET cortex-m4 OPTIONS --calibrate digits_samples.npz)\n"
            "add_executable(net main.c)\ntarget_link_libraries(net PRIVATE a_net)\n")
    project.write_text(text)
    build = tmp_path / "build"
    run(CMAKE, "-S", tmp_path, "-B", build, f"-DTOSAIC={tosaic}")
    run(CMAKE, "--build", build, "--target", "net", "a_net_test")
    run(build / "net")
    run(build / "a-net/build/a_net_test")
    # What it says of what cannot be.
    project.write_text(text.replace("cortex-m4", "cortex-m99"))
    assert "there is no target 'cortex-m99'" in run(CMAKE, "-S", tmp_path, "-B", build, status=1)
    project.write_text(text.replace("TARGET", "FOR"))
    assert "TARGET is needed" in run(CMAKE, "-S", tmp_path, "-B", build, status=1)
    project.write_text(text)
    assert "tosaic is not on PATH" in run(CMAKE, "-S", tmp_path, "-B", build, "-DTOSAIC=TOSAIC-NOTFOUND", "-DCMAKE_FIND_ROOT_PATH=/none",
                                          "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY", status=1)


def test_zephyr_module(tosaic, tmp_path):
    module = yaml.safe_load((ROOT / "zephyr/module.yml").read_text())
    assert (ROOT / module["build"]["cmake"] / "CMakeLists.txt").exists()
    options = kconfiglib.Kconfig(str(ROOT / module["build"]["kconfig"]), warn=False)
    options.syms["TOSAIC"].set_value("y")
    assert options.syms["TOSAIC_NPU_REGISTERS"].str_value == "y"
    assert int(options.syms["TOSAIC_NPU_BASE"].str_value, 16) == 0x48102000
    for name, text in HEADERS.items():
        path = tmp_path / "zephyr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "ZephyrConfig.cmake").write_text(ZEPHYR % (ROOT / module["build"]["cmake"]))
    for sample in module["samples"]:
        for folder in (ROOT / sample).iterdir():
            build = tmp_path / folder.name
            run(CMAKE, "-S", folder, "-B", build, f"-DZephyr_DIR={tmp_path}", f"-DTOSAIC={tosaic}")
            run(CMAKE, "--build", build)
            told = yaml.safe_load((folder / "sample.yaml").read_text())
            for one in told["tests"].values():
                for line in one["harness_config"]["regex"]:
                    assert line in run(build / "app")
