"""Identity numbers of people: published specimens are valid, and become invalid with a changed digit."""

from collections.abc import Callable

import pytest

from gatehouse.detection.validators import europe, medical, proves, refutes, supports, world

Check = Callable[[str], bool]

RIGHT: tuple[tuple[Check, str], ...] = (
    (europe.es_nif, "12345678-Z"),
    (europe.es_nie, "X1234567L"),
    (europe.fi_identity_code, "131052-308T"),
    (europe.se_personal, "811218-9876"),
    (europe.pl_pesel, "44051401458"),
    (europe.it_fiscal_code, "RSSMRA85T10A562S"),
    (europe.de_pension, "15070649C103"),
    (europe.de_tax_id, "86095742719"),
    (europe.fr_nir, "255081416802538"),
    (europe.nl_bsn, "111222333"),
    (europe.be_national, "85.07.30-033.28"),
    (europe.ch_ahv, "756.9217.0769.85"),
    (europe.pt_nif, "123456789"),
    (europe.ro_cnp, "1800101221144"),
    (europe.hr_oib, "33392005961"),
    (europe.ie_pps, "1234567T"),
    (world.ca_sin, "130 692 544"),
    (world.au_tfn, "123 456 782"),
    (world.in_aadhaar, "3998 7654 3211"),
    (world.th_national, "1234567890121"),
    (world.tr_national, "10000000146"),
    (world.sg_nric, "S1234567D"),
    (world.cn_resident, "11010519491231002X"),
    (world.tw_national, "A123456789"),
    (world.hk_identity, "A123456(3)"),
    (world.jp_my_number, "123456789018"),
    (world.il_identity, "123456782"),
    (world.za_identity, "8001015009087"),
    (world.br_cpf, "529.982.247-25"),
    (world.cl_rut, "12.345.678-5"),
    (world.ar_cuil, "20-12345678-6"),
    (world.mx_curp, "HEGG560427MVZRRL04"),
    (world.imei, "490154203237518"),
    (medical.nhs, "943 476 5919"),
    (medical.npi, "1234567893"),
    (medical.dea, "BB1388568"),
    (medical.kvnr, "A123456780"),
    (medical.lanr, "123456601"),
    (medical.au_medicare, "2123 45670 1"),
)


def name(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("check", "number"), RIGHT, ids=name)
def test_a_specimen_is_right(check: Check, number: str) -> None:
    assert check(number)


#: Numbers whose check digit is not the last character, or does not depend on the last digits.
ELSEWHERE = {"lanr", "au_medicare"}


@pytest.mark.parametrize(
    ("check", "number"),
    [item for item in RIGHT if item[0].__name__ not in ELSEWHERE and item[1][-1].isdigit()],
    ids=name,
)
def test_a_number_with_another_check_digit_is_invalid(check: Check, number: str) -> None:
    wrong_numbers = [number[:-1] + digit for digit in "0123456789" if digit != number[-1]]
    assert [other for other in wrong_numbers if check(other)] == []


@pytest.mark.parametrize(
    ("check", "number"),
    [
        (world.us_ssn, "078-05-1120"),
        (world.us_ssn, "000-12-3456"),
        (world.us_ssn, "666-12-3456"),
        (world.us_ssn, "900-12-3456"),
        (world.us_ssn, "536-00-8726"),
        (world.us_ssn, "536-22-0000"),
        (world.us_itin, "911-89-1234"),
        (world.us_itin, "811-70-1234"),
        (world.kr_resident, "001332-1234567"),
        (world.kr_resident, "960121-9234567"),
        (world.ca_sin, "111 111 111"),
        (world.in_aadhaar, "0998 7654 3211"),
        (world.za_identity, "9902294321191"),
        (world.id_nik, "3275013202990001"),
        (world.my_nric, "991332-01-1234"),
        (world.eg_national, "29013010101010"),
        (europe.fi_identity_code, "010324A110G"),
        (europe.de_pension, "15071349C103"),
        (europe.dk_cpr, "321299-1234"),
        (europe.cz_birth_number, "991399/1234"),
        (europe.de_tax_id, "11111111111"),
        (medical.npi, "9234567893"),
        (medical.nhs, "0000000000"),
    ],
    ids=name,
)
def test_a_number_that_was_never_issued_is_invalid(check: Check, number: str) -> None:
    assert not check(number)


@pytest.mark.parametrize(
    ("check", "number"),
    [
        (world.us_ssn, "536-22-8726"),
        (world.us_itin, "911-70-1234"),
        (world.kr_resident, "960121-1234567"),
        (world.id_nik, "3275014202990001"),
        (world.my_nric, "990112-01-1234"),
        (world.eg_national, "29001010101010"),
        (europe.dk_cpr, "311299-1234"),
        (europe.at_social_security, "1237 010180"),
        (europe.icao_checked, "C01X00T478"),
        (europe.no_birth_number, "01010750160"),
        (europe.uk_driving_licence, "MORGA657054SM9IJ"),
        (medical.bsnr, "021234568"),
    ],
    ids=name,
)
def test_a_well_formed_number_is_valid(check: Check, number: str) -> None:
    assert check(number)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"), [(proves, True, False), (refutes, None, False), (supports, True, None)], ids=name
)
def test_the_kind_of_a_check_decides_what_its_result_means(
    kind: Callable[[Check], Check], right: bool | None, wrong: bool | None
) -> None:
    verdict = kind(str.isdigit)
    assert (verdict("1"), verdict("a")) == (right, wrong)
