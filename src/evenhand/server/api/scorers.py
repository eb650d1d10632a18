"""The scorers that can compute scores."""

from evenhand.core.objects.scorers import ScorerList
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, json_answer
from evenhand.server.http.routes import Route
from evenhand.server.jobs.computing import run_off_loop


async def list_all(call: Call) -> Answer:
    return json_answer(ScorerList(items=await run_off_loop(call.service.scorers.infos)))


ROUTES = (
    Route(
        operation="list_scorers",
        method="GET",
        path="/v1/scorers",
        handler=list_all,
        audience="token:read",
        response=ScorerList,
        summary="List the scorers: names, versions, options, and which of them run here",
        tag="Scores",
    ),
)
