#!/bin/sh
# Sites on one machine with links as slow as wished: network namespaces on one bridge, each with a token bucket on what it sends and on what it
# receives, joined by MPICH. Needs root, iproute2 (ip, tc) and MPICH.
#
#   sh links.sh up SITES RATE         e.g. sh links.sh up 4 100mbit, or `none` for no limit; sites have addresses 10.77.0.1, 10.77.0.2, …
#   sh links.sh run SITES PROGRAM…    a rank a site
#   sh links.sh sent SITES            bytes that the sites have sent since `up`
#   sh links.sh down
#
# LINKS names the namespaces, so that several may stand beside each other.
set -eu

space=${LINKS:-einlink}
mpirun=$(command -v mpirun.mpich || command -v mpirun || true)

needed() {
  [ "$(id -u)" = 0 ] || { echo "links.sh: network namespaces need root" >&2; exit 1; }
  for tool in ip tc unshare; do
    command -v "$tool" >/dev/null || { echo "links.sh: $tool is missing: apt-get install iproute2 util-linux" >&2; exit 1; }
  done
  case "$($mpirun --version 2>/dev/null)" in
  *HYDRA*) ;;
  *) echo "links.sh: MPICH's mpirun is missing: apt-get install mpich" >&2; exit 1 ;;
  esac
}

down() {
  for name in $(ip netns list | cut -d' ' -f1 | grep "^$space" || true); do ip netns del "$name"; done
}

limit() { # namespace, device
  [ "$rate" = none ] || ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 50ms
}

case "${1:-}" in
needed) needed ;;
up)
  needed
  sites=$2 rate=$3
  down
  ip netns add "$space"
  ip -n "$space" link add bridge type bridge
  ip -n "$space" link set bridge up
  for i in $(seq "$sites"); do
    ip netns add "$space$i"
    ip link add "ein$i" netns "$space" type veth peer name eth0 netns "$space$i"
    ip -n "$space" link set "ein$i" master bridge up
    ip -n "$space$i" addr add "10.77.0.$i/24" dev eth0
    ip -n "$space$i" link set lo up
    ip -n "$space$i" link set eth0 up
    limit "$space$i" eth0
    limit "$space" "ein$i"
  done
  ;;
run)
  sites=$2
  shift 2
  hosts=$(seq -s, -f 10.77.0.%g "$sites")
  here=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
  chmod +x "$here"
  # Without UCX_TLS ranks would find each other's memory, across namespaces, and no limit would hold.
  exec ip netns exec "${space}1" unshare --uts sh -c "hostname ${space}1; exec \"\$@\"" - "$mpirun" \
    -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 -genv LINKS "$space" \
    -launcher ssh -launcher-exec "$here" -hosts "$hosts" -n "$sites" "$@"
  ;;
sent)
  for i in $(seq "$2"); do ip netns exec "$space$i" cat /sys/class/net/eth0/statistics/tx_bytes; done | awk '{ all += $1 } END { print all }'
  ;;
down) down ;;
-* | *.*.*.*) # In the place of ssh: [options] HOST COMMAND…
  while [ "${1#-}" != "$1" ]; do shift; done
  site=$space${1##*.}
  shift
  exec ip netns exec "$site" unshare --uts sh -c "hostname $site; exec sh -c \"\$1\"" - "$*"
  ;;
*)
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
