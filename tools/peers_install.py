"""Peers of ./dev compare at their full speed, below .cache: pinned Python environments, and llama.cpp built from its pinned source."""
import hashlib
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
REQUIREMENTS = ROOT / "tools" / "requirements"
LLAMA_SOURCE = "llama_cpp_python-0.3.36"
LLAMA_TARGETS = ["llama-bench", "llama-batched-bench", "llama-server", "llama-quantize"]

AVX2 = ["-DGGML_NATIVE=OFF", *(f"-DGGML_{name}=ON" for name in ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2"))]
# What a build of llama.cpp may use; the forced ones are the peers of a run with VT_CPU_ISA.
LLAMA_ISA = {
    "native": ["-DGGML_NATIVE=ON"],
    "avx512": [*AVX2, *(f"-DGGML_AVX512{name}=ON" for name in ("", "_VBMI", "_VNNI", "_BF16"))],
    "avxvnni": [*AVX2, "-DGGML_AVX_VNNI=ON"],
    "avx2": AVX2,
}


class Failure(Exception):
    """One line that names the thing and the remedy."""


def say(text):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def call(command, what, remedy, **options):
    """Runs a command and returns its standard output; its failure is one line, with the last one that it printed."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **options)
    except FileNotFoundError:
        raise Failure(f"{what}: no program {command[0]}; {remedy}") from None
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{what}: no end after {error.timeout:.0f} s; {remedy}") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "nothing printed").splitlines()
        raise Failure(f"{what}: ended with {done.returncode} ({lines[-1].strip()[:200]}); {remedy}: {shlex.join(command)}")
    return done.stdout


def environment(name, no_deps=False):
    """Interpreter of the environment with exactly the pinned packages of tools/requirements/NAME.txt, where ./dev keeps its own."""
    requirements = REQUIREMENTS / f"{name}.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    where = CACHE / "env" / f"{name}-{key}"
    python = where / "bin" / "python"
    if (where / ".complete").exists():
        return python
    if sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64":
        raise Failure(f"{requirements}: pinned for CPython 3.11 on x86-64, this is {platform.python_version()} on {platform.machine()}; "
                      "run with Debian 12's python3")
    say(f"making the Python environment '{name}'")
    for old in (CACHE / "env").glob(f"{name}-*"):
        shutil.rmtree(old)
    where.parent.mkdir(parents=True, exist_ok=True)
    remedy = "with a working network run"
    call([sys.executable, "-m", "venv", where], f"environment {name}", "install python3-venv, then run")
    call([python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "--require-hashes", "--only-binary", ":all:",
          *(["--no-deps"] if no_deps else []), "-r", requirements], f"environment {name}", remedy)
    (where / ".complete").touch()
    return python


def oracle():
    """Interpreter of the environment that ./dev golden uses: it can make and convert checkpoints."""
    return pathlib.Path(os.environ["VLLM_ORACLE"]) if os.environ.get("VLLM_ORACLE") else environment("oracle")


def vllm_python():
    """Interpreter with vLLM for CPU. It refuses to say its version unless a distribution is called vllm, as its own images do."""
    python = environment("peer_vllm", no_deps=True)
    (site,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    info = site / "vllm-0.32.0+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n", encoding="utf-8")
    return python


def llama_source():
    """Folder of llama.cpp's unpacked source; the archive is checked against its pinned hash by pip."""
    peers = CACHE / "peers"
    source = peers / LLAMA_SOURCE / "vendor" / "llama.cpp"
    if (peers / LLAMA_SOURCE / ".complete").exists():
        return source
    archive = peers / f"{LLAMA_SOURCE}.tar.gz"
    if not archive.exists():
        python = environment("peer_llama_build")  # reads the archive's metadata, so that pip needs nothing unpinned
        say("fetching the source of llama.cpp (77 MB) from PyPI (llama-cpp-python)")
        peers.mkdir(parents=True, exist_ok=True)
        call([python, "-m", "pip", "download", "--disable-pip-version-check", "-q", "--no-deps", "--no-binary", ":all:",
              "--no-build-isolation", "--require-hashes", "-d", peers, "-r", REQUIREMENTS / "peer_llama.txt"],
             "the source of llama.cpp", "give an existing build by --llama BIN, or with a working network run")
    call(["tar", "-xzf", archive, "-C", peers], str(archive), "remove the file and run ./dev compare again; the command was")
    (peers / LLAMA_SOURCE / ".complete").touch()
    return source


def llama_configure(source, build, isa):
    """The cmake command of a build. g++ 12 miscompiles its AMX tile configuration, so the compiler is clang 19."""
    return ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang-19",
            "-DCMAKE_CXX_COMPILER=clang++-19", *LLAMA_ISA[isa], "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
            "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_WEBUI=OFF"]


def llama_bin(isa):
    """Folder with llama.cpp's programs for an instruction set, built if they are not there (about 8 minutes on 2 cores)."""
    build = CACHE / "peers" / f"{LLAMA_SOURCE}-{isa}"
    if not (build / ".complete").exists():
        source = llama_source()
        say(f"building llama.cpp ({isa}) in {build}")
        remedy = "needs clang-19, libomp-19-dev, cmake and ninja-build; to see why run"
        call(llama_configure(source, build, isa), "configuring llama.cpp", remedy)
        memory = next(int(line.split()[1]) for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemAvailable"))
        jobs = max(1, min(len(os.sched_getaffinity(0)), memory // 1572864))  # clang takes up to 1.5 GB a unit
        call(["cmake", "--build", build, "-j", jobs, "-t", *LLAMA_TARGETS], "building llama.cpp", remedy)
        (build / ".complete").touch()
    return build / "bin"
