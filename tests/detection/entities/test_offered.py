import json
from pathlib import Path

import pytest

from gatehouse.detection.entities import open_recognizer
from gatehouse.detection.entities.offered import offered
from gatehouse.detection.models import LabelsUnknown


def test_the_embedded_model_takes_its_own_names_only() -> None:
    assert offered(None).refusal("person") is None
    assert offered(None).refusal("drug_name") == (
        "'drug_name' is not recognised: known are person, organization, location, address, date_of_birth."
        " Other names need a GLiNER model: set NER_MODEL_PATH to its folder"
    )


def test_a_gliner_model_takes_any_name(tmp_path: Path) -> None:
    (tmp_path / "gliner_config.json").write_text("{}")
    assert offered(tmp_path).refusal("drug_name") is None


def test_a_spacy_model_takes_the_names_that_it_lists(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"labels": {"ner": ["WORK_OF_ART", "GPE"]}}))
    recognisers = offered(tmp_path)
    assert recognisers.refusal("work_of_art") is None
    assert "known are person, organization, location, address, date_of_birth, work_of_art." in str(
        recognisers.refusal("drug_name")
    )


def test_a_model_refuses_labels_that_it_does_not_recognise() -> None:
    with pytest.raises(LabelsUnknown, match="drug_name"):
        open_recognizer().recognize(["aspirin"], ["person", "drug_name"])
