#!/usr/bin/env bash
# Brings docker-compose.yml up for real on a bare Debian, as root, where no image can be pulled, and shows what it does. docs/deploy.md says
# what was seen. Stand-ins for the base images are built under the names that are pinned (infra/images/stand-ins).
#
#   infra/prove_compose.sh            everything, then remove what was made
#   KEEP=1 infra/prove_compose.sh     leave dockerd and the services running, and say how to end them
#   WORK=/folder infra/prove_compose.sh   use this folder, and what an earlier run with KEEP left of images in it
#
# pip and uv look for packages where PIP_INDEX_URL and UV_DEFAULT_INDEX say, if set; certificates of this machine are put into the base image.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
work=${WORK:-$(mktemp -d /var/tmp/prove-compose-XXXXXX)}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
pinned() { sed -n "s/.*\(\b$1:[A-Za-z0-9._-]*\)@sha256:.*/\1/p" "$2" | head -1; }
base_image=$(pinned python infra/images/Dockerfile)
postgres_image=$(pinned postgres docker-compose.yml)
objects_image=$(pinned versity\\/versitygw docker-compose.yml)

say() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*"; }
fail() { say "FAILED: $*"; exit 1; }
# what this shell finds first may be a docker of somebody else's making
docker() { /usr/bin/docker "$@"; }

packages=()
for program in dockerd:docker.io docker-compose:docker-compose debootstrap:debootstrap iptables:iptables curl:curl; do
  command -v "${program%%:*}" >/dev/null || packages+=("${program##*:}")
done
if [ "${#packages[@]}" -gt 0 ]; then
  say "installing ${packages[*]}"
  apt-get -o APT::Sandbox::User=root update -qq
  DEBIAN_FRONTEND=noninteractive apt-get -o APT::Sandbox::User=root install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

end() {
  status=$?
  if [ -n "${KEEP:-}" ]; then
    say "left running; end it with: cd $work/clone && DOCKER_HOST=$DOCKER_HOST docker-compose down -v; kill \$(cat $work/pid); rm -r $work"
    exit "$status"
  fi
  [ ! -d "$work/clone" ] || (cd "$work/clone" && docker-compose down -v -t 20 >/dev/null 2>&1) || true
  if [ -s "$work/pid" ]; then
    daemon=$(cat "$work/pid")
    kill "$daemon" 2>/dev/null || true
    for _ in $(seq 60); do [ -d "/proc/$daemon" ] || break; sleep 1; done
  fi
  # dockerd leaves the mount of its own network namespace behind
  umount "$work"/exec/netns/* 2>/dev/null || true
  rm -rf "$work"
  exit "$status"
}
trap end EXIT

mkdir -p "$work"
export DOCKER_HOST=unix://$work/docker.sock DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0 COMPOSE_PROJECT_NAME=zarrmill-proof
if ! docker info >/dev/null 2>&1; then
  say "starting dockerd"
  setsid dockerd --data-root "$work/data" -H "$DOCKER_HOST" --exec-root "$work/exec" --pidfile "$work/pid" >"$work/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 1; done
  docker info >/dev/null 2>&1 || { tail -20 "$work/dockerd.log"; fail "dockerd does not answer"; }
fi
say "$(docker info --format 'dockerd {{.ServerVersion}}, {{.Driver}}, cgroup v{{.CgroupVersion}}'), $(docker-compose version --short 2>/dev/null | sed 's/^/compose /')"

have() { docker image inspect "$1" >/dev/null 2>&1; }
if ! have "$base_image"; then
  say "stand-in for $base_image: debootstrap"
  debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,python3-pip,libgomp1 bookworm "$work/base" >"$work/debootstrap.log" 2>&1
  cp /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/ca-certificates.crt"
  tar -C "$work/base" -c . | docker import \
    --change "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt" - "$base_image" >/dev/null
  rm -rf "$work/base"
fi
index=()
for name in PIP_INDEX_URL UV_DEFAULT_INDEX; do [ -z "${!name:-}" ] || index+=(--build-arg "$name"); done
mkdir -p "$work/stand-ins"
cp infra/images/stand-ins/* tests/support/s3_stand_in.py tests/support/s3_guard.py tests/support/s3_process.py "$work/stand-ins/"
for stand_in in "postgres=$postgres_image" "objects=$objects_image"; do
  have "${stand_in##*=}" && continue
  say "stand-in for ${stand_in##*=}"
  docker build -q --network host --build-arg BASE_IMAGE="$base_image" "${index[@]}" -f "$work/stand-ins/${stand_in%%=*}.Dockerfile" \
    -t "${stand_in##*=}" "$work/stand-ins" >/dev/null
done

say "a bare clone, without .env"
rm -rf "$work/clone"
git clone -q "$repository" "$work/clone"
cd "$work/clone"
say "building zarrmill:$version ($(git rev-parse --short HEAD))"
docker build -q --network host --build-arg BASE_IMAGE="$base_image" "${index[@]}" -f infra/images/Dockerfile -t "zarrmill:$version" . >/dev/null
say "$(docker run --rm "zarrmill:$version" version), $(docker image inspect --format '{{.Size}}' "zarrmill:$version" | numfmt --to=iec) of image"

export ZARRMILL_BASE_IMAGE=$base_image ZARRMILL_POSTGRES_IMAGE=$postgres_image ZARRMILL_OBJECTS_IMAGE=$objects_image
export ZARRMILL_PORT=${ZARRMILL_PORT:-18321} ZARRMILL_OBJECTS_PORT=${ZARRMILL_OBJECTS_PORT:-17070} ZARRMILL_PREFECT_PORT=${ZARRMILL_PREFECT_PORT:-14200}
export ZARRMILL_CONTRACT_HOST=http://127.0.0.1:$ZARRMILL_PORT
api=http://127.0.0.1:$ZARRMILL_PORT objects=http://127.0.0.1:$ZARRMILL_OBJECTS_PORT

say "production refuses the published secrets"
refused=$(docker run --rm -e ZARRMILL_ENVIRONMENT=production -e ZARRMILL_DATABASE_URL=postgresql://zarrmill:zarrmill-development@postgres/zarrmill "zarrmill:$version" init 2>&1 || true)
grep -q "ZARRMILL_ENVIRONMENT" <<<"$refused" || fail "production took the published secrets: $refused"

say "docker-compose up -d"
docker-compose up -d 2>"$work/up.log" || { cat "$work/up.log"; docker-compose ps; docker-compose logs --tail 40; fail "up"; }
ended() { docker inspect --format '{{.State.Status}}' "$(docker-compose ps -q "$1")" 2>/dev/null | grep -q exited; }
until_true() { # seconds, what, command…
  local deadline=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do [ "$SECONDS" -lt "$deadline" ] || { docker-compose ps; docker-compose logs --tail 30; fail "$what did not come to pass"; }; sleep 2; done
}
until_true 600 "the demo's end" ended demo
docker-compose logs --no-color demo | tail -25
[ "$(docker inspect --format '{{.State.ExitCode}}' "$(docker-compose ps -q demo)")" = 0 ] || fail "the demo did not convert"
well() { [ "$(docker inspect --format '{{.State.Health.Status}}' "$(docker-compose ps -q "$1" | head -1)")" = healthy ]; }
for service in postgres objects prefect scheduler worker worker-large runner api; do until_true 240 "health of $service" well "$service"; done
docker-compose ps
docker-compose logs --no-color init | sed 's/^/  /'

field() { python3 -c "import json, sys; found = json.load(sys.stdin)
for part in sys.argv[1].split('.'): found = found[int(part)] if part.isdigit() else found[part]
print(found)" "$1"; }
balance() {
  curl -fsS "$1" | python3 -c "import json, sys; d = json.load(sys.stdin); print(d['discovered_count'], d['store_count'], d['failure_count'], d['pending_count'], d['s3_anonymous'])"
}
dataset=$(curl -fsS "$api/catalog.json" | field datasets.0.dataset_id)
say "$dataset through the API: $(balance "$api/$dataset/zarr/index.json"); unsigned from the bucket: $(balance "$objects/served/$dataset/zarr/index.json")"
[ "$(balance "$objects/served/$dataset/zarr/index.json")" = "12 9 3 0 True" ] || fail "12 = 9 + 3 + 0, open to anybody"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$objects/served?list-type=2")" = 403 ] || fail "anybody may list the bucket"

zarrmill() { docker-compose exec -T runner zarrmill "$@"; }
say "zarrmill doctor"
zarrmill doctor --to s3://served || fail "the doctor finds something"

say "everything anew, one worker killed meanwhile, another size added"
docker-compose run -T --rm demo convert /sources/demo-dataset --to s3://served --mode full >"$work/full.log" 2>&1 &
full=$!
# asked inside the container and at once again: a conversion of the demo takes a second
timeout 120 docker-compose exec -T -e PGPASSWORD=zarrmill-development postgres bash -c \
  'until [ "$(psql -h 127.0.0.1 -U zarrmill -d zarrmill -Atc "SELECT count(*) FROM attempts WHERE ended_at IS NULL")" -gt 0 ]; do :; done' \
  || fail "no conversion began"
victim=$(docker-compose ps -q worker | head -1)
kill -9 "$(docker inspect --format '{{.State.Pid}}' "$victim")"
say "killed worker ${victim:0:12}"
docker-compose up -d --no-deps --scale worker=2 worker >/dev/null 2>&1
wait "$full" || { cat "$work/full.log"; fail "the conversion with a killed worker"; }
tail -12 "$work/full.log"
[ "$(balance "$api/$dataset/zarr/index.json")" = "12 9 3 0 True" ] || fail "12 = 9 + 3 + 0 after the kill"
two_workers() { # by a file: the doctor would take the end of a pipe for an error
  [ "$(docker-compose ps -q worker | wc -l)" = 2 ] && zarrmill doctor --to s3://served >"$work/doctor.log" && grep -q 'workers: 3' "$work/doctor.log"
}
until_true 120 "three workers" two_workers
grep worker "$work/doctor.log"
[ "$(docker inspect --format '{{.RestartCount}}' "$victim")" -ge 1 ] || fail "the killed worker was not started again"
say "killed container restarted, $(docker-compose ps -q worker | wc -l) small workers now"

say "init again changes nothing"
docker-compose run -T --rm init 2>/dev/null | tee "$work/again.log"
! grep -q '^done' "$work/again.log" || fail "the second init did something"
say "PROVEN"
