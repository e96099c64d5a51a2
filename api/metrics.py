"""What is measured of the server, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from db.listing import totals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from starlette.types import Scope

    from api.service import Service

__all__ = ["Metrics"]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """The measurements of one application. Names and labels are in docs/api.md."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "zarrmill_http_requests", "Requests answered.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "zarrmill_http_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("route",),
            buckets=(0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10, 60),
            registry=self._registry,
        )
        self._sent = Counter("zarrmill_http_sent_bytes", "Bytes of bodies sent.", ("route",), registry=self._registry)
        self._at_once = Gauge("zarrmill_http_requests_at_once", "Requests being answered.", registry=self._registry)
        self._registry.register(_State(service))

    def answering(self) -> AbstractContextManager[None]:
        """Counts a request as being answered while it is entered."""
        return self._at_once.track_inprogress()

    def note(self, scope: Scope, status: int, seconds: float, sent_bytes: int) -> None:
        """Count one answer. Routes are named by their template and methods by a short list, so labels stay few."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        self._sent.labels(route).inc(sent_bytes)

    def page(self) -> bytes:
        """Everything in the text format of Prometheus. Asks the database one question."""
        return generate_latest(self._registry)


class _State(Collector):
    """How the datasets of the target stand, asked anew for each page."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing is asked when this is registered."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One gauge a number; none without a database."""
        if self._service.engine is None:
            return
        with self._service.reading() as c:
            found = totals(c, target=self._service.target.url)
        datasets = GaugeMetricFamily("zarrmill_datasets", "Active datasets by status.", labels=("status",))
        for status, count in found.datasets.items():
            datasets.add_metric((status,), count)
        yield datasets
        recordings = GaugeMetricFamily("zarrmill_recordings", "Recordings in published indexes.", labels=("list",))
        for name, count in found.recordings.items():
            recordings.add_metric((name,), count)
        yield recordings
        yield GaugeMetricFamily("zarrmill_converting", "Recordings that are being converted.", value=found.converting)
        yield GaugeMetricFamily("zarrmill_callbacks_waiting", "Callbacks not delivered.", value=found.callbacks_waiting)
