"""Every page, by a name and its address in the demonstration. A new page adds its line here."""

from collections.abc import Callable

from tests.pages.site import Site

PAGES: dict[str, Callable[[Site], str]] = {
    "projects": lambda site: "/projects",
    "dashboard": lambda site: "/projects/demo/dashboard",
    "traces": lambda site: "/projects/demo/traces",
    "traces-none": lambda site: "/projects/empty/traces",
    "dashboard-none": lambda site: "/projects/empty/dashboard",
    "trace": lambda site: "/projects/demo/traces/live-0390",
    "trace-error": lambda site: f"/projects/demo/traces/{site.failed_trace()}?errors=1",
    "trace-partial": lambda site: "/projects/demo/traces/live-0395",
    "sessions": lambda site: "/projects/demo/sessions",
    "session": lambda site: "/projects/demo/sessions/conversation-000",
    "experiments": lambda site: "/projects/demo/experiments",
    "experiments-none": lambda site: "/projects/empty/experiments",
    "experiment": lambda site: f"/projects/demo/experiments/{site.experiments()[0]}",
    "comparison": lambda site: "/projects/demo/compare/" + "/".join(site.compared("small model")),
    "comparison-not": lambda site: "/projects/demo/compare/" + "/".join(site.compared("new judge")),
    "comparison-anyway": lambda site: (
        "/projects/demo/compare/" + "/".join(site.compared("new judge")) + "?force=1"
    ),
    "datasets": lambda site: "/projects/demo/datasets",
    "datasets-none": lambda site: "/projects/empty/datasets",
    "dataset": lambda site: f"/projects/demo/datasets/{site.datasets()[0]}?since=1&add=1",
    "item": lambda site: f"/projects/demo/items/{site.item()}",
    "search": lambda site: "/projects/demo/search?q=express+fee",
    "jobs": lambda site: "/projects/demo/jobs",
    "rules": lambda site: "/projects/demo/rules?new=1",
    "queue": lambda site: "/projects/demo/queue",
    "queue-none": lambda site: "/projects/empty/queue",
    "queue-trace": lambda site: f"/projects/demo/queue/{site.queued_trace('pending')}",
    "queue-trace-said": lambda site: f"/projects/demo/queue/{site.queued_trace('annotated')}",
    "queue-new": lambda site: "/projects/demo/queues",
    "queue-review": lambda site: f"/projects/demo/queues/{site.review_queue()}",
    "queue-add": lambda site: f"/projects/demo/queues/{site.review_queue()}/add",
    "agreement": lambda site: "/projects/demo/agreement",
    "agreement-none": lambda site: "/projects/empty/agreement",
    "ab": lambda site: "/projects/demo/ab",
    "ab-arms": lambda site: "/projects/demo/ab/" + "/".join(site.compared("small model")),
    "shares": lambda site: "/projects/demo/shares",
    "shares-none": lambda site: "/projects/empty/shares",
    "shared-trace": lambda site: site.share("trace", "live-0390"),
    "shared-experiment": lambda site: site.share("experiment", site.experiments()[0]),
    "shared-comparison": lambda site: site.share("comparison", *site.compared("small model")),
    "settings": lambda site: "/projects/demo/settings",
    "scorers": lambda site: "/projects/demo/scorers",
    "scorer": lambda site: "/projects/demo/scorers/helpfulness",
    "scorer-known": lambda site: "/projects/demo/scorers/llm_judge",
}
