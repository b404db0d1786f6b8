# Servers for a fleet, on loopback, in the folder of a check; to be sourced behind helpers.sh.
# shellcheck shell=bash disable=SC2154

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# PostgreSQL is no root's. It ends with who begins it.
as_server() {
  local user=()
  [[ $(id -u) -ne 0 ]] || user=(--reuid=nobody --regid=nogroup --clear-groups)
  cd / && exec setpriv --pdeathsig=KILL "${user[@]}" -- "$@"
}

# PostgreSQL in ./postgres; `url` is its address. start_postgres again: the same one goes on.
postgres_programs() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1; }
start_postgres() {
  local bin
  bin=$(postgres_programs)
  if [[ ! -d postgres ]]; then
    chmod 711 "$work"
    mkdir postgres
    [[ $(id -u) -ne 0 ]] || chown nobody:nogroup postgres
    (as_server "$bin/initdb" -D "$work/postgres" -U tsomon --auth=trust -E UTF8 --no-locale --no-sync) >initdb.log 2>&1 ||
      { cat initdb.log; exit 1; }
    port=$(free_port)
  fi
  url=postgresql://tsomon@127.0.0.1:$port/postgres
  for _ in 1 2 3 4 5 6; do
    (as_server "$bin/postgres" -D "$work/postgres" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$work/postgres") \
      >>postgres.log 2>&1 &
    server=$!
    wait_for 30 eval '"$bin/psql" "$url" -c "SELECT 1" || ! kill -0 "$server"'
    "$bin/psql" "$url" -c 'SELECT 1' >/dev/null 2>&1 && return
    # Processes of one that was killed may still be there.
    wait "$server" || true
    sleep 1
  done
  cat postgres.log
  exit 1
}
sql() { "$(postgres_programs)/psql" -qAtX "$url" -c "$1"; }

# In ./nats, after `have nats-server nats-server`.
start_nats() {
  if [[ ! -d nats ]]; then
    mkdir nats
    port=$(free_port)
  fi
  "$program" -a 127.0.0.1 -p "$port" -js -sd "$work/nats" >>nats.log 2>&1 &
  server=$!
  url=nats://127.0.0.1:$port
  wait_for 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" || { cat nats.log; exit 1; }
}
# Three of them, in ./nats-1 to ./nats-3; one_nats NUMBER begins one of them (again), its number is in server_of[NUMBER].
one_nats() {
  "$program" -c "nats-$1.conf" >>nats.log 2>&1 &
  server_of[$1]=$!
}
start_cluster() {
  local i routes=
  for i in 1 2 3; do
    ports[i]=$(free_port)
    routes+="nats://127.0.0.1:$(free_port) "
  done
  read -ra routes <<<"$routes"
  for i in 1 2 3; do
    cat >"nats-$i.conf" <<CONF
server_name: s$i
listen: 127.0.0.1:${ports[i]}
jetstream { store_dir: "$work/nats-$i" }
cluster { name: fleet, listen: "${routes[i - 1]#nats://}", routes: [$(IFS=,; echo "${routes[*]}")] }
CONF
    one_nats $i
  done
  url=nats://127.0.0.1:${ports[1]},127.0.0.1:${ports[2]},127.0.0.1:${ports[3]}
  port=${ports[1]}
}
