"""Which addresses may be connected to: public ones, and the private ones that the operator named."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DENIED: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        # IANA's IPv4 special-purpose registry (RFC 6890), clouds' metadata services, multicast and reserved space.
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
        # IPv6: everything outside global unicast, and inside it what is special or carries an IPv4 address within:
        # Teredo and its neighbours, documentation, 6to4, segment routing.
        "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
)  # fmt: skip
"""`::/3` covers ::1, IPv4-mapped and -compatible addresses, and the NAT64 prefixes 64:ff9b::/96 and 64:ff9b:1::/48."""


class Blocked(OSError):
    """The address is not public, and the operator has not named it."""


class Private:
    """The private places that may be called: names, addresses, networks, each alone or with a port.

    `localhost`, `crm.internal:8080`, `10.1.2.3`, `10.1.0.0/16`, `[::1]:8000`.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._names: set[tuple[str, int | None]] = set()
        self._networks: list[tuple[Network, int | None]] = []
        for entry in entries:
            self._add(entry.strip().lower())

    def allows(self, host: str, port: int, address: Address) -> bool:
        """Whether `host`, which resolved to `address`, was named by its name or by the address."""
        if self._has(host, port):
            return True
        return any(address in network and its_port in (None, port) for network, its_port in self._networks)

    def names(self, host: str, port: int) -> bool:
        """Whether `host` as it is written, a name or an address, was named."""
        try:
            return self.allows(host, port, ip_address(host))
        except ValueError:
            return self._has(host, port)

    def _has(self, host: str, port: int) -> bool:
        name = host.lower().rstrip(".")
        return (name, None) in self._names or (name, port) in self._names

    def _add(self, entry: str) -> None:
        try:
            self._networks.append((ip_network(entry.strip("[]"), strict=False), None))
            return
        except ValueError:
            pass
        host, _, port = entry.rpartition(":")
        if not port.isdigit():
            host, port = entry, ""
        number = int(port) if port else None
        try:
            self._networks.append((ip_network(host.strip("[]"), strict=False), number))
        except ValueError:
            self._names.add((host, number))


def private_hosts() -> Private:
    """What HOLDFAST_ALLOWED_PRIVATE_HOSTS names."""
    return _parsed(tuple(settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS))


def check(host: str, port: int, addresses: list[str], private: Private) -> list[str]:
    """The addresses, when all of them may be connected to. One that may not condemns the name: a name that answers with
    a public and a private address is no mistake of ours. Raises Blocked."""
    for text in addresses:
        address = ip_address(text)
        if is_denied(address) and not private.allows(host, port, address):
            named = "" if text == host else f" ({host})"
            raise Blocked(
                f"{text}{named} is not a public address. An operator can allow it in HOLDFAST_ALLOWED_PRIVATE_HOSTS."
            )
    return addresses


def is_denied(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return True
    return any(address in network for network in DENIED if network.version == address.version)


@cache
def _parsed(entries: tuple[str, ...]) -> Private:
    return Private(entries)
