"""How this machine reaches channels and indexes: told by the user, never written into a lock."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """Addresses and settings for reaching the network.

    Attributes:
        channel_mirrors: Channel name, or canonical URL, to the http(s) URLs to try instead, in
            order.
        default_index: Address of the default PyPI index where the user set one (it may hold a
            login), else None: the engines' own default.
        index_logins: Name of a recipe's index to the address to use instead (with a login).
        offline: Use caches only; fail on a miss.
        environment: Variables that the engines and requests read about the network (proxies,
            certificates, netrc), already translated: `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`,
            `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `NETRC`, and lower-case twins.
        timeout_s: Seconds without an answer, or without any more of it, until a server counts as
            silent.
        retries: How often a request is tried again where trying again may help.
    """

    channel_mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_index: str | None = None
    index_logins: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 30
    retries: int = 3
