"""A slow line to the S3 endpoint on a port of 127.0.0.1, in a process of its own, until stdin closes. Prints its own port.

python slow_line_process.py PORT LATENCY_S BYTES_PER_S
"""

from __future__ import annotations

import sys

from fault_proxy import Fault, FaultProxy


def main() -> None:
    upstream, latency_s, bytes_per_s = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    proxy = FaultProxy(upstream, bytes_per_s=bytes_per_s)
    proxy.faults = [Fault(kind="delay", seconds=latency_s)]
    print(proxy.port, flush=True)
    sys.stdin.read()
    proxy.close()


if __name__ == "__main__":
    main()
