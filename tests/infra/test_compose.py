"""docker-compose.yml and infra/deploy against the code: commands, options, settings, ports, limits. No Docker here; infra/prove_compose.sh runs it."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from host_tree import container
from typer.main import get_command

from cli.main import app
from contract.errors import Refused
from flows.doctor.machine import LEAST_MEMORY_BYTES
from infra.answering import is_answering
from infra.home import Home
from infra.settings import Settings, load_settings
from infra.sizes import parse_bytes
from infra.worker_budget import Given, current_budget

ROOT = Path(__file__).resolve().parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
DEPLOY = ROOT / "infra" / "deploy"
EXAMPLE = (ROOT / ".env.example").read_text()
DOCKERFILE = (ROOT / "infra/images/Dockerfile").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SETTINGS = {Settings.variable(field) for field in Settings.model_fields}
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::-([^}]*))?\}")
NOT_OURS = {"postgres", "objects"}
ONCE = {"init", "demo"}


def compose(**given: str) -> dict[str, Any]:
    """The file as compose reads it: in its strings, variables are replaced by what is given, else by their defaults."""

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(each) for key, each in node.items()}
        if isinstance(node, list):
            return [filled(each) for each in node]
        if not isinstance(node, str):
            return node
        text = VARIABLE.sub(lambda found: given.get(found[1]) or found[2] or "", node)
        assert "$" not in text, "a variable in a form that compose 1.29 does not read"
        return text

    loaded: dict[str, Any] = filled(yaml.safe_load(COMPOSE_TEXT))
    return loaded


SERVICES: dict[str, dict[str, Any]] = compose()["services"]
OURS = {name: one for name, one in SERVICES.items() if name not in NOT_OURS}


def check_command(arguments: list[str]) -> None:
    """Our command line takes these arguments."""
    group: Any = get_command(app)
    command = group.commands[arguments[0]]
    with command.make_context(arguments[0], list(arguments[1:])):
        pass


def bytes_of(limit: str) -> int:
    return int(limit[:-1]) * {"g": 1 << 30, "m": 1 << 20}[limit[-1]]


def test_the_services_are_those_of_the_topology() -> None:
    expected = {
        "postgres",
        "objects",
        "prefect",
        "init",
        "scheduler",
        "worker",
        "worker-large",
        "runner",
        "api",
        "demo",
    }
    assert set(SERVICES) == expected


def test_every_command_and_option_is_one_of_ours() -> None:
    for name, service in OURS.items():
        if "entrypoint" not in service:
            check_command(service["command"])
        else:
            assert (name, service["entrypoint"]) == ("prefect", ["prefect"])
    with pytest.raises(KeyError):
        check_command(["no-such-command"])
    with pytest.raises(Exception, match="No such option"):
        check_command(["worker", "--no-such-option"])


def test_prefect_takes_the_command_of_its_service() -> None:
    from prefect.cli import app as prefect_app
    from prefect.settings import get_current_settings

    server = OURS["prefect"]
    assert server["command"][:2] == ["server", "start"]
    assert prefect_app is not None
    ui = type(get_current_settings().server.ui).model_fields
    assert {"static_directory", "api_url"} <= set(ui)


def test_the_environment_of_each_service_is_made_of_settings() -> None:
    for name, service in OURS.items():
        names = set(service["environment"])
        if name == "prefect":
            assert all(one.startswith("PREFECT_SERVER_") or one == "DO_NOT_TRACK" for one in names)
        else:
            assert names <= SETTINGS, name


@pytest.mark.parametrize("name", [name for name in OURS if name != "prefect"])
def test_each_service_comes_up_without_anything_set_and_not_in_production(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in OURS[name]["environment"].items():
        monkeypatch.setenv(variable, value)
    settings = load_settings()
    assert settings.database_url is not None
    assert settings.dask_address == "tcp://scheduler:8786"
    for variable, value in compose(ZARRMILL_ENVIRONMENT="production")["services"][name]["environment"].items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(Refused, match="secret"):
        load_settings()


def test_with_secrets_of_their_own_production_comes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"ZARRMILL_POSTGRES_PASSWORD": "a1" * 16, "ZARRMILL_OBJECTS_SECRET": "b2" * 16}
    filled = compose(ZARRMILL_ENVIRONMENT="production", **own)["services"]
    for variable, value in filled["worker"]["environment"].items():
        monkeypatch.setenv(variable, value)
    assert load_settings().environment == "production"
    told = filled["postgres"]["environment"]["POSTGRES_PASSWORD"], filled["objects"]["environment"]["ROOT_SECRET_KEY"]
    assert told == tuple(own.values())
    assert "zarrmill-development" not in str(filled)


def test_the_example_names_every_variable_with_its_default_and_no_secret() -> None:
    given = dict(line.split("=", 1) for line in EXAMPLE.splitlines() if line and not line.startswith("#"))
    used: dict[str, set[str]] = {}
    for name, default in VARIABLE.findall(COMPOSE_TEXT):
        used.setdefault(name, set()).add(default)
    assert set(given) == set(used)
    assert {name: defaults for name, defaults in used.items() if len(defaults) > 1} == {}
    differing = {name for name, value in given.items() if value and {value} != used[name]}
    assert differing == {"ZARRMILL_ENVIRONMENT", "ZARRMILL_DEMO"}, "an example that is neither empty nor the default"
    assert (given["ZARRMILL_ENVIRONMENT"], given["ZARRMILL_DEMO"]) == ("production", "0")
    secrets = [name for name in given if re.search("PASSWORD|SECRET|TOKEN", name)]
    assert len(secrets) == 5
    assert all(given[name] == "" for name in secrets)


def test_ports_are_published_on_loopback_and_may_be_set() -> None:
    published = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}
    assert set(published) == {"objects", "prefect", "api"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    moved = compose(ZARRMILL_PORT="1", ZARRMILL_OBJECTS_PORT="2", ZARRMILL_PREFECT_PORT="3")["services"]
    assert [moved[name]["ports"][0].split(":")[1] for name in ("api", "objects", "prefect")] == ["1", "2", "3"]
    for name, ports in published.items():
        inside = ports[0].rpartition(":")[2]
        assert f":{inside}" in " ".join(SERVICES[name]["healthcheck"]["test"])
        assert inside in [*SERVICES[name]["command"], SERVICES[name]["environment"].get("VGW_PORT", "").lstrip(":")]
    environment = OURS["api"]["environment"]
    assert environment["ZARRMILL_CONTRACT_HOST"].endswith(":" + OURS["api"]["ports"][0].split(":")[1])
    assert environment["AWS_ENDPOINT_URL"] == "http://objects:7070"
    assert environment["PREFECT_API_URL"] == "http://prefect:4200/api"


def test_what_is_named_stands_in_the_file() -> None:
    hosts = set(re.findall(r"(?:@|//)([a-z]+):\d+", COMPOSE_TEXT)) - {"http"}
    assert hosts <= set(SERVICES)
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for waited, how in service.get("depends_on", {}).items():
            assert how["condition"] == ("service_completed_successfully" if waited in ONCE else "service_healthy")
            assert waited in ONCE or "healthcheck" in SERVICES[waited]
        for volume in service.get("volumes", []):
            where = volume.split(":")[0]
            assert (ROOT / where).is_file() if where.startswith(".") else where in compose()["volumes"]


def test_every_service_that_stays_has_a_health_check_and_a_limit() -> None:
    for name, service in SERVICES.items():
        assert "mem_limit" in service, name
        assert ("healthcheck" in service) == (name not in ONCE), name
        if name in OURS:
            assert (service["init"], service["image"]) == (True, f"zarrmill:{VERSION}")
    beat = SERVICES["runner"]["healthcheck"]["test"][-1]
    home = re.search(r"ZARRMILL_HOME=(\S+)", DOCKERFILE)
    assert home is not None
    assert beat == f"file:{home[1]}/run/runner.beat"


def test_workers_are_of_two_sizes_and_declare_their_limit_less_headroom(tmp_path: Path) -> None:
    declared = {}
    for name in ("worker", "worker-large"):
        service = SERVICES[name]
        assert service["mem_limit"] == service["memswap_limit"], "swap would let it exceed what it declares"
        assert "--memory" not in service["command"], "the limit alone says it"
        limit = bytes_of(service["mem_limit"])
        tree = tmp_path / name
        files = container(tree, limit=limit, host=64 << 30)
        budget = current_budget(Given(), headroom=Settings().memory_headroom, scratch=tree / "scratch", files=files)
        assert budget.memory_bytes <= 0.85 * limit
        assert budget.memory_bytes >= LEAST_MEMORY_BYTES
        parse_bytes(service["command"][service["command"].index("--scratch") + 1])
        grace = service["stop_grace_period"]
        assert int(grace.removesuffix("s")) > 2 * Settings().stop_grace_s
        declared[name] = budget.memory_bytes
    assert declared["worker-large"] > 2 * declared["worker"]


def test_images_are_pinned_by_digest_and_none_is_minio() -> None:
    images = [SERVICES[name]["image"] for name in sorted(NOT_OURS)]
    images += re.findall(r"^ARG BASE_IMAGE=(\S+)", DOCKERFILE, re.MULTILINE)
    assert [image.split(":")[0] for image in images] == ["versity/versitygw", "postgres", "python"]
    assert all(re.fullmatch(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in images)
    assert OURS["init"]["build"]["args"]["BASE_IMAGE"] == images[-1]
    assert "minio" not in COMPOSE_TEXT.lower()
    assert not re.search("amd64|arm64|x86_64|aarch64|platform", COMPOSE_TEXT + DOCKERFILE)


def test_the_image_holds_every_room() -> None:
    rooms = {one.rstrip("*") for one in _pyproject()["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert rooms == set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE))
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == rooms | set(re.findall(r"[\w.-]+\.(?:txt|lock|toml|md)|LICENSE", " ".join(_copied())))


def test_what_is_not_python_is_installed_too() -> None:
    rooms = re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE)
    listed = subprocess.run(["git", "ls-files", *rooms], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listed.splitlines() if not name.endswith(".py")]
    needed = [file for file in files if not {"images", "deploy", "front"} & set(file.parts) and file.suffix != ".sh"]
    patterns = _pyproject()["tool"]["setuptools"]["package-data"]["*"]
    for file in needed:
        # a pattern without ** reaches the files of a package, not those of a folder in it
        is_of_package = (ROOT / file).with_name("__init__.py").exists()
        fitting = [one for one in patterns if file.match(one.removeprefix("**/")) and (is_of_package or "**" in one)]
        assert fitting, f"{file} would not be in an installation"
    assert any(file.parts[:2] == ("contract", "schemas") for file in needed)


def _copied() -> list[str]:
    return re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE)


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_a_health_check_tells_what_answers(tmp_path: Path, s3_server: Any) -> None:
    beat = tmp_path / "beat"
    beat.touch()
    assert is_answering(f"file:{beat}")
    assert not is_answering(f"file:{tmp_path / 'none'}")
    assert is_answering(f"tcp://127.0.0.1:{s3_server.port}")
    assert is_answering(f"{s3_server.url}/")
    assert not is_answering(f"{s3_server.url}/no-such-bucket/no-such-key")
    assert not is_answering("http://127.0.0.1:1/")
    assert not is_answering("nonsense")
    (tmp_path / "net").mkdir()
    head = "  sl  local_address rem_address   st\n"
    (tmp_path / "net/tcp").write_text(f"{head}   0: 0100007F:1F90 0200007F:2252 01 x\n")
    (tmp_path / "net/tcp6").write_text(f"{head}   0: {'0' * 32}:2253 {'0' * 32}:2253 0A x\n")
    assert is_answering("peer:8786", proc=tmp_path)
    assert not is_answering("peer:8787", proc=tmp_path), "that one only listens"


def manifests() -> Iterator[dict[str, Any]]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            assert {"apiVersion", "kind", "metadata"} <= set(document), path.name
            yield document


def pods(node: Any) -> Iterator[dict[str, Any]]:
    """Every pod specification of a manifest."""
    if isinstance(node, dict):
        if "containers" in node:
            yield node
        for each in node.values():
            yield from pods(each)
    elif isinstance(node, list):
        for each in node:
            yield from pods(each)


def test_the_manifests_run_commands_of_ours_with_requests_that_equal_limits() -> None:
    ran = []
    for pod in (pod for document in manifests() for pod in pods(document)):
        (container_,) = pod["containers"]
        if "command" not in container_:
            check_command(container_["args"])
            ran.append(container_["args"][0])
        resources = container_["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"]
        assert container_["image"].endswith(f"/zarrmill:{VERSION}")
        assert pod["securityContext"]["runAsUser"] == 10001
        assert "--uid 10001" in DOCKERFILE
        if container_["args"][0] == "worker":
            arguments = container_["args"]
            assert "--memory" not in arguments
            (scratch,) = [one["emptyDir"]["sizeLimit"] for one in pod["volumes"]]
            assert f"{scratch}B" == arguments[arguments.index("--scratch") + 1]
            assert pod["terminationGracePeriodSeconds"] > 2 * Settings().stop_grace_s
    assert sorted(set(ran)) == ["init", "runner", "scheduler", "serve", "worker"]


def test_the_settings_of_the_manifests_are_ours_and_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    (given,) = [document["data"] for document in manifests() if document["kind"] == "ConfigMap"]
    assert set(given) <= SETTINGS
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", "postgresql://u@h/d")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    services = {one["metadata"]["name"] for one in manifests()} | {"zarrmill-scheduler"}
    assert settings.prefect_api_url is not None
    assert set(re.findall(r"//(zarrmill-\w+):", f"{settings.prefect_api_url} {settings.dask_address}")) <= services


def test_the_script_for_slurm_runs_a_command_of_ours() -> None:
    script = (DEPLOY / "slurm/worker.sbatch").read_text()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    (line,) = re.findall(r"^zarrmill (.*) &$", script, re.MULTILINE)
    shown = line.replace('"$((SLURM_MEM_PER_NODE * 85 / 100))MiB"', "55705MiB")
    arguments = re.sub(r'"?[\w-]*\$\w+"?', "8", shown).split()
    check_command(arguments)
    parse_bytes(arguments[arguments.index("--memory") + 1])
    page = (DEPLOY / "slurm/README.md").read_text()
    assert set(re.findall(r"\b(?:ZARRMILL_DASK|ZARRMILL_DATABASE)\w+", page)) <= SETTINGS


def test_the_recipe_for_jobqueue_gives_a_worker_what_ours_is_given(home: Path) -> None:
    from infra.cluster import child_environment, worker_command

    page = (DEPLOY / "slurm/README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    tree = ast.parse(code)
    (extra,) = [
        keyword.value for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords
        if keyword.arg == "worker_extra_args"
    ]  # fmt: skip
    names = {"memory_bytes": 32 << 30, "slots": 8}
    given: list[str] = eval(compile(ast.Expression(extra), "README.md", "eval"), names)
    settings = load_settings(database_url="postgresql://u@h/d")
    Home(settings.home)
    ours = worker_command(
        settings, scheduler="tcp://h:1", memory_bytes=int((32 << 30) * 0.85), scratch_bytes=100 << 30, slots=8
    )
    own = ours[ours.index("--resources") :]
    skipped = {"--local-directory", own[own.index("--local-directory") + 1]}
    assert sorted(given) == sorted(set(own) - skipped | {"--preload"}) or sorted(set(given)) == sorted(
        set(own) - skipped
    )
    for name in set(child_environment({})) & set(re.findall(r"\b([A-Z_]+)=", code)):
        assert f"{name}={child_environment({})[name]}" in code


def test_every_requirement_is_met_here() -> None:
    from flows.doctor.machine import unmet_requirements

    assert requires("zarrmill")
    assert unmet_requirements() == []
