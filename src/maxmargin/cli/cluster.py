"""``--cluster``: a Dask cluster whose workers do the work of a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


def cluster_options(does: str) -> Any:
    """Return a decorator with ``--cluster`` and ``--insecure``."""

    def decorate(function: Any) -> Any:
        function = click.option(
            "--insecure",
            is_flag=True,
            help="Let --cluster be another machine without TLS: a trusted one.",
        )(function)
        return click.option(
            "--cluster",
            metavar="ADDRESS",
            help=f"Scheduler of a Dask cluster whose workers {does}, such as "
            "tcp://127.0.0.1:8786; on other machines tls://. Default: this process.",
        )(function)

    return decorate


@contextmanager
def connected(cluster: str | None, insecure: bool) -> Iterator[Any]:
    """Yield a client of the cluster at an address, which is closed at the end; of none, None."""
    if cluster is None:
        if insecure:
            raise click.UsageError("--insecure is for --cluster ADDRESS.")
        yield None
        return
    from maxmargin.rows.cluster import connect

    try:
        client = connect(cluster, insecure=insecure)
    except ValueError:
        raise click.UsageError(
            f"--cluster {cluster} is another machine without TLS: everybody on the network could "
            "read the data and run functions there. Use tls://, or --insecure if you trust them."
        ) from None
    try:
        yield client
    finally:
        client.close()
