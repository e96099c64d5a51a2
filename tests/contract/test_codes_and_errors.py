from __future__ import annotations

import pickle

import pytest

from contract import codes, errors
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES, FailureCode, PendingReason, WhyDue
from contract.errors import NotNow, RecordingFailed, ZarrmillError


@pytest.mark.parametrize(
    ("words", "sentences"),
    [(FailureCode, FAILURE_SENTENCES), (PendingReason, PENDING_SENTENCES), (WhyDue, WHY_DUE_SENTENCES)],
)
def test_every_word_of_state_has_its_own_sentence(words: type[FailureCode], sentences: dict[str, str]) -> None:
    assert list(sentences) == list(words)
    assert len(set(sentences.values())) == len(sentences)
    assert all(text.endswith(".") and text[0].isupper() and "\n" not in text for text in sentences.values())


def test_published_words_are_those_of_the_contract_and_two_of_ours() -> None:
    assert {code.value for code in FailureCode} == {
        "not_continuous", "corrupt_or_truncated", "unsupported_format", "empty_recording", "file_read_error",
        "recording_too_large", "channel_count_mismatch", "maxshield_uncalibrated", "retry_exhausted",
        "store_path_collision", "annex_object_missing",
    }  # fmt: skip
    assert {reason.value for reason in PendingReason} == {"infra_failure", "memory_budget", "not_attempted"}
    assert codes.MAX_COUNTED_ATTEMPTS == 5


def tree(root: type[ZarrmillError]) -> set[type[ZarrmillError]]:
    return {root}.union(*(tree(child) for child in root.__subclasses__() if child.__module__ == "contract.errors"))


def test_the_error_tree_is_drawn_whole_and_exported() -> None:
    drawn = errors.__doc__ or ""
    found = tree(ZarrmillError)
    assert {error.__name__ for error in found} == set(errors.__all__)
    assert all(error.__name__ in drawn for error in found)
    assert len({error.code for error in found}) == len(found)


@pytest.mark.parametrize(
    "error",
    [
        errors.Refused("The port 'x' is no number.", detail="ZARRMILL_PORT"),
        errors.Busy("Run 3 holds the dataset."),
        NotNow(PendingReason.MEMORY_BUDGET, detail="needs 3 GiB", counted=False),
        RecordingFailed(FailureCode.EMPTY_RECORDING, detail="no channels"),
        errors.PublishConflict("Changed twice."),
    ],
)
def test_an_error_crosses_a_process_border_whole(error: ZarrmillError) -> None:
    error.add_note("seen by the worker")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.__dict__ == error.__dict__
    assert str(again) == str(error) == error.sentence


def test_a_verdict_and_a_condition_say_the_sentence_of_their_word() -> None:
    assert RecordingFailed(FailureCode.NOT_CONTINUOUS).sentence == FAILURE_SENTENCES[FailureCode.NOT_CONTINUOUS]
    assert NotNow(PendingReason.INFRA_FAILURE).sentence == PENDING_SENTENCES[PendingReason.INFRA_FAILURE]
