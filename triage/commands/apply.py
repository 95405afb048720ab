"""`triage apply`: the append without a screen, behind the same gate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson

from triage import contract, draft
from triage.commands import CLEAN, REFUSED, UNREADABLE, USAGE, fail, login, note, parser, show, show_json
from triage.fleet.find import candidates
from triage.log.append import Applied, Refused, moved, utc_now
from triage.log.source import Base, Unreadable
from triage.recovery.acknowledge import Answer, BadAnswer, Unanswered, parse_answer, splits_of
from triage.recovery.plan import Plan, Refusal
from triage.session import Session, differs, open_session
from triage.text import clean
from triage.words import acks_in_words, applied_in_words, counted


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options_of = parser(
        "triage apply",
        "Append the planned repair. Every unknown outcome needs an answer of its own.",
        epilog="FINDING: ran, did-not-run or could-not-tell; for a waiting call: deny",
    )
    options_of.add_argument("log", metavar="LOG", nargs="+", help="one log; several with --not-started-only")
    options_of.add_argument("--ack", action="append", default=[], metavar="KEY=FINDING[:NOTE]")
    options_of.add_argument("--operator", default="", metavar="NAME", help="who answers (default: you)")
    options_of.add_argument("--plan", metavar="FILE", help="append only if the log is still as in this plan")
    options_of.add_argument("--json", action="store_true", help="print the result as one JSON object")
    options_of.add_argument(
        "--not-started-only",
        action="store_true",
        help="close each session below these paths in which nothing needs a person; skip the rest",
    )
    options = options_of.parse_args(arguments)
    if options.not_started_only:
        if options.ack or options.plan:
            options_of.error("--not-started-only takes neither --ack nor --plan")
        return close_not_started(options.log, json=options.json)
    if len(options.log) > 1:
        options_of.error("answers are for one log: name one, or use --not-started-only")
    operator = options.operator or login()
    return apply(options.log[0], options.ack, operator=operator, plan_file=options.plan, json=options.json)


def apply(path: str, acks: Sequence[str], *, operator: str, plan_file: str | None, json: bool) -> int:
    """Append the repair of one log with the answers `acks` (`KEY=FINDING[:NOTE]`). Returns the exit code.

    Whether the log moved is asked before the answers are looked at: a plan that no longer holds can't
    say which keys there are.
    """
    try:
        planned = _read_plan(plan_file) if plan_file is not None else None
    except (OSError, ValueError) as error:
        return fail(f"{plan_file} is no plan: {_reason(error)}", USAGE)
    try:
        session = open_session(path)
    except Unreadable as error:
        return fail(str(error), UNREADABLE)
    except OSError as error:
        return fail(f"{path} can't be read: {error.strerror}", UNREADABLE)
    try:
        if planned is not None and planned[0] != session.journal.base:
            return _other_base(session, *planned, acks=acks, json=json)
        if not session.plan.repairs:
            return _nothing(session, json, differs(session.journal, 0, _findings(acks)))
        answers = _answers(acks, session.plan, operator)
        warns = session.activity().warns
        applied = session.apply(answers)
    except KeyboardInterrupt:
        note(f"{path}: interrupted; `triage plan` shows whether the repair has landed")
        raise
    except BadAnswer as error:
        return fail(str(error), USAGE)
    except Unanswered as error:
        return _unanswered(session, error, json)
    except Refused as error:
        return _refuse(path, error.refusal, json)
    except Unreadable as error:
        return fail(str(error), UNREADABLE)
    except OSError as error:  # before anything was written: what comes after it is Refused
        return fail(f"{path} can't be read: {error.strerror}. Nothing was written", UNREADABLE)
    if warns:
        note(f"{path}: {warns}")
    _forget_drafts(session)
    _report(session, applied, answers, json)
    return CLEAN


def _forget_drafts(session: Session) -> None:
    try:
        draft.drop(session)
    except OSError as error:
        note(f"the draft of this log could not be removed: {error.strerror}")


def _read_plan(plan_file: str) -> tuple[Base, list[Any]]:
    with open(plan_file, "rb") as file:
        row = orjson.loads(file.read())
    base, repairs = contract.base_of(row), row.get("repairs") or []
    kinds = zip(base, (int, int, int, str, bool, int), strict=True)
    whole = isinstance(repairs, list) and all(
        isinstance(r, dict) and isinstance(r.get("type"), str) and isinstance(r.get("data"), dict)
        for r in repairs
    )
    if not whole or any(type(value) is not kind for value, kind in kinds) or base.size < 0:
        raise ValueError("its base or its repairs are no plan's")
    return base, repairs


def _reason(error: Exception) -> str:
    return error.strerror or "" if isinstance(error, OSError) else str(error)


def _other_base(
    session: Session, base: Base, repairs: Sequence[Any], *, acks: Sequence[str], json: bool
) -> int:
    """A plan made from another state: done already where all of it landed, else refused."""
    otherwise = differs(session.journal, base.size, _findings(acks))
    if not session.plan.repairs and session.holds(base, repairs):
        return _nothing(session, json, otherwise)
    refusal = moved(session.path, base)
    if otherwise:
        refusal = refusal._replace(says=f"{refusal.says}. {otherwise}")
    return _refuse(session.path, refusal, json)


def _findings(acks: Sequence[str]) -> dict[str, str]:
    """What answers say of which key, where there is no plan any more that knows the keys."""
    return {key: finding for ack in acks for key, finding, _ in splits_of(ack)[:1]}


def _answers(acks: Sequence[str], plan: Plan, operator: str) -> dict[str, Answer]:
    now = utc_now()
    answers: dict[str, Answer] = {}
    for ack in acks:
        key, finding, note = parse_answer(ack, plan)
        if key in answers:
            raise BadAnswer(f"{key!r} is answered twice: give one answer for each call")
        answers[key] = Answer(finding, note, operator, now)
    return answers


def _nothing(session: Session, json: bool, otherwise: str) -> int:
    """Somebody repaired it before; `otherwise` says where they found what these answers don't say."""
    size = session.journal.size
    if json:
        show_json(
            contract.applied_row(session.path, Applied((), 0, b"", size, size, session.plan.status), {})
        )
    else:
        show(f"{clean(session.path)}: nothing to repair, nothing written")
    if otherwise:
        note(f"{session.path}: {otherwise}")
    return CLEAN


def _unanswered(session: Session, error: Unanswered, json: bool) -> int:
    keys = acks_in_words([o for o in session.plan.owed if o.key in error.missing])
    for kept in draft.load(session):
        note(f"{kept.operator} answered {', '.join(kept.answers)} at {kept.at} and did not apply it")
    refusal = Refusal(
        "unacknowledged",
        f"{session.path}: {error}; nothing was written. Check each one, then add {keys}",
        boundary=session.plan.boundary.name,
        ids=tuple(o.tool_call_id for o in session.plan.owed if o.key in error.missing),
        retryable=True,
    )
    return _refuse(session.path, refusal, json, error.missing)


def _refuse(path: str, refusal: Refusal, json: bool, missing: tuple[str, ...] = ()) -> int:
    if json:
        show_json(contract.refusal_row(path, refusal, missing))
    return fail(refusal.says, REFUSED)


def _report(session: Session, applied: Applied, answers: dict[str, Answer], json: bool) -> None:
    try:
        _print(session, applied, answers, json)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # the repair has landed: a full disk under our output must not deny it
        says = f"{session.path}: the repair was appended; the report of it could not be written"
        sys.stderr.write(clean(f"triage: {says} ({error.strerror})") + "\n")
        raise BrokenPipeError from error  # nobody reads our output any more


def _print(session: Session, applied: Applied, answers: dict[str, Answer], json: bool) -> None:
    row = contract.applied_row(session.path, applied, answers)
    if json:
        show_json(row)
        return
    count, size = len(applied.landed), len(applied.text)
    show(clean(applied_in_words(session.path, count, size, applied.first_line, applied.status)))
    for entry in row["appended"]:
        found = entry["finding"] or "no answer needed"
        call = f"  {entry['tool_call_id']}  {entry['risk']}  {found}" if entry["tool_call_id"] else ""
        show(clean(f"  line {entry['line']:,}  {entry['type']}{call}"))


def close_not_started(paths: Sequence[str], *, json: bool) -> int:
    """Close every session below `paths` in which nothing needs a person; say why for each other one.

    The only bulk repair there is: no unknown outcome and no waiting call is ever closed by it.
    """
    worst = CLEAN
    for path in dict.fromkeys(file for start in paths for file in candidates(start)):
        named = path in paths
        try:
            session = open_session(path)
            if session.plan.status == "clean":
                continue
            why = _needs_person(session)
            if why:
                note(f"{path}: skipped, {why}")
                continue
            applied = session.apply({})
        except Unreadable as error:
            if named:
                worst = max(worst, fail(str(error), UNREADABLE))
            continue
        except Refused as error:
            worst = max(worst, _refuse(path, error.refusal, json))
            continue
        _report(session, applied, {}, json)
    return worst


def _needs_person(session: Session) -> str:
    """Why a session may not be closed in bulk, else ""."""
    plan = session.plan
    if plan.refusal is not None:
        return plan.refusal.says
    if not plan.repairs:
        return f"{plan.status}: {plan.doubt or 'nothing would be appended'}"
    needing = sum(owed.needs_acknowledgement for owed in plan.owed)
    if needing:
        return f"{counted(needing, 'call')} of it {'needs' if needing == 1 else 'need'} a person"
    return session.corrupt_in_the_way
