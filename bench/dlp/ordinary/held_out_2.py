"""Templates of the second held-out set.

They were written after the patterns were tuned on the first held-out set, to check that the improvements generalize. A
string `‹…›#` becomes a JSON number (`turns.filled`)."""

from typing import Final

from bench.dlp.ordinary.documents import Kind
from bench.dlp.ordinary.turns import Tool

KINDS: Final = (
    Kind(
        "systemd journal",
        (
            "Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› systemd[1]: ‹service›.service: Main process exited, code=exited, status=‹digit›/FAILURE",
            "Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› kernel: [‹float6›] nvme0n‹digit›: p1 p2, ‹number10› 512-byte logical blocks",
            "Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› sshd[‹pid›]: Connection closed by ‹ip› port ‹port› [preauth]",
            "Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› chronyd[‹pid›]: Selected source ‹ip›, offset -0.000‹number6› seconds",
            "Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› CRON[‹pid›]: (root) CMD (/opt/‹service›/run --since ‹epoch› --batch ‹number9›)",
            "audit: type=1400 audit(‹epoch›.‹number3›:‹number7›): apparmor=\"ALLOWED\" pid=‹pid› inode=‹number9›",
        ),
        sensitive_line="Mar ‹number_2_to_60› ‹clock_seconds› node‹digit› ‹service›[‹pid›]: ‹key›=‹planted›",
    ),
    Kind(
        "terraform plan",
        (
            "  # aws_instance.‹service› will be updated in-place\n  ~ resource \"aws_instance\" \"‹service›\" {\n        id  = \"i-0‹hex16›\"\n      ~ ami = \"ami-0‹hex16›\" -> \"ami-0‹hex16›\"",
            "      + arn    = \"arn:aws:s3:::acme-‹service›-‹number12›\"\n      + etag   = \"‹md5›\"",
            "      ~ source_code_hash = \"‹base64_44›\" -> \"‹base64_44›\"",
            "data.aws_caller_identity.current: Read complete after 0s [id=‹number12›]",
            "aws_route53_record.‹service›: Refreshing state... [id=Z‹alphanumeric12›‹upper6›_‹service›.example.org_A]",
            "      + vpc_id = \"vpc-‹hex8›\"\n      + cidr_blocks = [\"10.‹number_2_to_60›.0.0/16\"]",
        ),
        sensitive_line='      + ‹key› = "‹planted›"',
        max_lines=12,
    ),
    Kind(
        "bibliography",
        (
            "[‹number_2_to_60›] ‹name› et al., \"On ‹product› sizing\", J. Appl. Eng. ‹number_2_to_60› (‹digit›), ‹number3›–‹number4›, doi:10.‹number4›/s‹number5›-0‹number2›-‹number5›-‹digit›.",
            "‹name›, ‹name›: Notes on ‹service›. ISBN 978-3-‹number5›-‹number3›-‹digit›, ISSN ‹number4›-‹number3›X.",
            "@article{‹name›20‹year2›, volume = {‹number_2_to_60›}, number = {‹digit›}, pages = {‹number4›--‹number4›}, note = {arXiv:2‹number3›.‹number5›}, pmid = {‹number8›} }",
            "PMCID: PMC‹number7›; accession GSE‹number6›, SRR‹number8›, NM_‹number9›.‹digit›, ORCID 0000-0002-‹number4›-‹number4›",
            "OCLC ‹number9›, LCCN 20‹number8›, GND ‹number9›-‹digit›",
        ),
        sensitive_line="‹label›: ‹planted›",
        max_lines=14,
    ),
    Kind(
        "product list",
        (
            "‹product› | EAN ‹number13› | UPC ‹number12› | ‹count› pcs | ‹price› EUR",
            "Art.-Nr. ‹number3›.‹number3›.‹number2›  ‹product›  VE ‹number_2_to_60›  ‹price_comma›",
            "‹upper2›‹number4›-‹number3›‹upper2› ‹product› ‹number4› x ‹number3› x ‹number3› mm, ‹number4› g",
            "Part no. ‹number3›-‹number4›-‹number2› replaces ‹number3›-‹number4›-‹number2›",
            "ref. ‹upper3›-‹number3›‹upper2›, old ref. ‹upper2›‹number2› ‹upper3›",
            "lot ‹upper1›‹number7›‹upper1› exp ‹month_compact› pallet 00‹number12›‹number6›",
        ),
        sensitive_line="‹label› | ‹planted›",
        max_lines=20,
    ),
    Kind(
        "docker inspect",
        (
            '    "Id": "‹sha256›",\n    "Created": "‹iso›",\n    "Pid": ‹pid›,',
            '    "Image": "sha256:‹sha256›",\n    "LogPath": "/var/lib/docker/containers/‹sha256›/‹sha256›-json.log",',
            '    "MacAddress": "02:42:ac:11:00:0‹digit›", "GlobalIPv6PrefixLen": ‹digit›, "EndpointID": "‹sha256›",',
            '    "Memory": ‹number10›, "NanoCpus": ‹number10›, "ShmSize": 67108864, "OomScoreAdj": ‹digit›,',
            '    "Env": ["PATH=/usr/local/bin:/usr/bin", "BUILD=‹timestamp_digits›", "TOKENIZERS_PARALLELISM=false", "SEED=‹number10›"],',
            '    "SandboxKey": "/var/run/docker/netns/‹hex12›", "KeyVersion": "v‹digit›",',
        ),
        head="[{",
        foot='    "Restart": 0\n}]',
        sensitive_line='    "‹key›": "‹planted›",',
        max_lines=12,
    ),
    Kind(
        "notebook",
        (
            '  {"cell_type": "code", "execution_count": ‹number_2_to_60›, "id": "‹hex8›", "metadata": {}, "source": ["df = load(\'‹file›\', seed=‹number9›)\\n", "df.shape"]},',
            '  {"cell_type": "code", "id": "‹hex8›", "outputs": [{"text": ["(‹number7›, ‹number_2_to_60›)\\n", "mean ‹float6› std ‹float6›\\n", "‹number11›\\n"]}]},',
            '  {"cell_type": "markdown", "id": "‹hex8›", "source": ["Rows ‹comma_grouped›, ‹percent› % kept, run ‹uuid›"]},',
            '  {"outputs": [{"data": {"text/plain": ["array([‹number9›, ‹number10›, ‹number9›])"]}, "execution_count": ‹number_2_to_60›}]},',
        ),
        head='{ "cells": [',
        foot='], "nbformat": 4 }',
        sensitive_line='  {"source": ["‹key› = \'‹planted›\'\\n"]},',
        max_lines=10,
    ),
    Kind(
        "hex dump",
        (
            "0000‹hex3›0: ‹hex8› ‹hex8› ‹hex8› ‹hex8›  ................",
            "0000‹hex3›0  ‹hexpair› ‹hexpair› ‹hexpair› ‹hexpair›  ‹hexpair› ‹hexpair› ‹hexpair› ‹hexpair›  |........|",
            "crc32 ‹number10› adler ‹number10› md5 ‹md5›",
        ),
        sensitive_line="‹key› ‹planted›",
    ),
    Kind(
        "tab separated ids",
        (
            "‹number9›\t‹number11›\t‹epoch›\t‹alphanumeric10›\t‹number3›",
            "‹number10›\t‹number12›\t‹epoch_ms›\t‹sku›\t‹number4›",
            "‹number8›\t‹number13›\t‹epoch›\t‹id12›\t‹number5›",
        ),
        head="row\tobject\tat\tcode\tn",
        sensitive_line="‹label›\t‹planted›",
    ),
    Kind(
        "build files",
        (
            "    <dependency>\n      <groupId>org.acme.‹service›</groupId>\n      <artifactId>‹package›</artifactId>\n      <version>‹version›.‹day_compact›</version>\n    </dependency>",
            "implementation 'org.acme:‹package›:‹version›' // sha256:‹sha256›",
            "set(CPACK_PACKAGE_VERSION ‹version›.‹number4›)",
            "MODULE.bazel.lock: \"bzlTransitiveDigest\": \"‹base64_44›\"",
            "  - id: ‹service›\n    rev: ‹sha1›\n    additional_dependencies: [‹package›==‹version›]",
            "EXPOSE ‹port›\nLABEL build=‹number9› revision=‹sha1›",
        ),
        sensitive_line='‹key›="‹planted›"',
        max_lines=14,
    ),
    Kind(
        "api description",
        (
            "  /v2/‹service›/{id}:\n    get:\n      operationId: get‹upper3›\n      security: [{ apiKey: [] }]\n      parameters:\n      - { name: id, in: path, schema: { type: integer, format: int64, example: ‹number10› } }",
            "      x-request-id: ‹uuid›\n      example: { token_type: Bearer, expires_in: ‹number4›, scope: ‹service›.read }",
            "        nextToken: { type: string, example: ‹id24›‹id12› }\n        createdAt: { type: string, example: '‹iso›' }",
            "        accountRef: { type: string, pattern: '^[A-Z]{2}[0-9]{8}$', maxLength: ‹number_2_to_60› }\n        total: { type: number, example: ‹price› }",
        ),
        head="openapi: 3.1.0",
        sensitive_line="        example: ‹key›=‹planted›",
        max_lines=10,
    ),
    Kind(
        "timetable and results",
        (
            "‹clock› IC ‹number4› ‹city› Pl. ‹digit›  ‹clock› S‹digit› ‹number5› +‹digit›",
            "‹name› ‹digit›:‹number2›.‹number2› (‹number4› pts), bib ‹number4›, split ‹number3› ‹number3› ‹number3›",
            "‹city› – ‹city› ‹digit›:‹digit› (att. ‹comma_grouped›)",
            "Rank ‹number_2_to_60›: ‹number4› ‹number4› ‹number3› ‹number3› avg ‹ratio›",
        ),
        sensitive_line="‹label› ‹planted›",
    ),
    Kind(
        "mail thread",
        (
            "> On ‹mail_date›, ‹name› wrote:\n> > the figures for ‹service› are in ‹file›, sheet ‹digit›, code ‹number9›",
            "> see https://example.org/t/‹number7›/‹uuid›?sid=‹number10›&page=‹number_2_to_60›",
            "Dial-in: meeting ‹number3› ‹number4› ‹number4›, one tap +1‹number10›,,‹number11›#",
            "> +1 on the plan, PO ‹number10›, cost centre ‹number6›, project ‹number3›-‹number5›",
            "Voucher ‹upper3›-‹number4›-‹upper3›, valid until ‹date_slashes›, redemption no. ‹number12›",
        ),
        sensitive_line="> ‹label›: ‹planted›",
    ),
)  # fmt: skip

SENTENCES: Final[dict[str, tuple[str, ...]]] = {
    "en": (
        "The scale reads ‹number4› grams for sample ‹number8›, shelf ‹upper1›‹number_2_to_60›.",
        "Grant ‹number9› was split over ‹number_2_to_60› partners, see annex ‹digit› of call ‹number6›.",
        "Our tap counted ‹number9› litres since ‹date›, the one in ‹city› ‹number10›.",
        "Replay room ‹number9› was full, so the stream moved to channel ‹number11›.",
        "The linear model has ‹comma_grouped› weights; segment ‹hex8› was trained on ‹date›.",
        "For the square in ‹city› we ordered ‹count› stones, quote ‹number7›, version ‹digit›.",
        "It is plate ‹number_2_to_60› of volume ‹digit›, catalogue entry ‹number8›.",
        "Can you cancel the seat on coach ‹number_2_to_60›, reservation ‹upper6›, and refund ‹amount›?",
    ),
    "de": (
        "Das Rezept ergibt ‹number_2_to_60› Portionen, Artikel ‹number8› im Regal ‹digit›.",
        "Die Ausschreibung ‹number9› endet am ‹date_dots›, Los ‹digit› mit ‹dot_grouped› Euro.",
        "Zähler ‹number10› meldete um ‹clock› Uhr ‹number7› kWh.",
        "Bitte Vorgang ‹number8›/‹year2› mit Bescheid ‹number9› zusammenlegen.",
        "Die Charge ‹upper2›‹number6› hat Prüfprotokoll ‹number10›.",
    ),
    "fr": (
        "Le dossier ‹number9› passe en commission le ‹date_slashes›, lot ‹digit›.",
        "Le compteur affiche ‹number8› depuis le ‹date_slashes›, soit ‹space_grouped› unités.",
        "Merci de rapprocher le bon ‹number10› de la livraison ‹tracking›.",
        "La carte du restaurant a ‹number_2_to_60› pages et la carte ‹digit› date de 20‹year2›.",
    ),
    "es": (
        "El expediente ‹number9› se archivó el ‹date_slashes›, folio ‹number4›.",
        "Nos faltan ‹count› cajas del lote ‹number10›, palé ‹number12›.",
        "La tarjeta gráfica modelo ‹sku› cuesta ‹price_comma› € y pesa ‹count› g.",
    ),
    "it": (
        "La pratica ‹number9› è stata chiusa alle ‹clock›, protocollo ‹number7›.",
        "La carta della zona è il foglio ‹number3›, scala 1:‹number5›, tavola ‹number8›.",
        "Servono ‹count› viti codice ‹number10›, colli ‹number_2_to_60›.",
    ),
    "nl": (
        "Dossier ‹number9› is op ‹date_dots› gesloten, zaak ‹number8›.",
        "De kaart van ‹city› is blad ‹number4›, de teller staat op ‹number10›.",
    ),
    "pl": (
        "Sprawa ‹number9› została zamknięta ‹date_dots›, protokół ‹number7›.",
        "Karta katalogowa ‹sku› ma ‹number_2_to_60› stron, partia ‹number10›.",
    ),
    "pt": (
        "O processo ‹number9› foi fechado às ‹clock›, ofício ‹number7›.",
        "A carta náutica ‹number5› custa ‹price_comma› €, lote ‹number10›.",
    ),
    "tr": (
        "‹number9› numaralı dosya ‹date_dots› tarihinde kapandı, sayaç ‹number10›.",
        "Kart oyunu ‹number_2_to_60› parça, barkod ‹number13›.",
    ),
    "ja": (
        "案件‹number9›は‹date›に完了し、記録番号は‹number10›です。",
        "カード型の部品‹sku›は‹count›個、ロット‹number11›です。",
    ),
}  # fmt: skip

TOOLS: Final = (
    Tool("redis_get", {"key": "counter:‹service›"}, "‹number9›"),
    Tool("sql_scalar", {"sql": "select max(id) from ‹service›"}, "‹number11›"),
    Tool("evaluate", {"expression": "2**‹number_2_to_60› * ‹number5›"}, "‹number12›"),
    Tool("checksum", {"path": "‹file›", "algorithm": "crc32"}, "‹number10›\n"),
    Tool("shell", {"command": "uuidgen && shasum ‹file›"}, "‹uuid_upper›\n‹sha1›  ‹file›\n"),
    Tool("head_object", {"bucket": "acme-‹service›", "key": "exports/‹timestamp_digits›-‹number8›.parquet"},
         {"ETag": "\"‹md5›\"", "ContentLength": "‹bytes›#", "VersionId": "‹id24›‹id5›", "x-amz-request-id": "‹alphanumeric16›", "x-amz-id-2": "‹base64_44›‹id24›="}),
    Tool("list_charges", {"limit": "‹number_2_to_60›#", "starting_after": "ch_3‹id24›"},
         {"data": [{"id": "ch_3‹id24›", "balance_transaction": "txn_3‹id24›", "amount": "‹number5›#", "created": "‹epoch›#", "receipt_number": "‹number4›-‹number4›"}]}),
    Tool("describe_instances", {"ids": ["i-0‹hex16›"]},
         {"OwnerId": "‹number12›", "ReservationId": "r-0‹hex16›", "Instances": [{"ImageId": "ami-0‹hex16›", "LaunchTime": "‹iso›", "ClientToken": "‹uuid›", "VolumeId": "vol-0‹hex16›"}]}),
    Tool("search_traces", {"service": "‹service›", "from": "‹epoch_ns›#"},
         {"traces": [{"trace_id": "‹positive_i64›", "span_id": "‹positive_i64›", "parent_id": "‹positive_i64›", "start": "‹epoch_ns›#", "duration": "‹number8›#"}]}),
    Tool("get_thread", {"channel": "C0‹alphanumeric10›", "ts": "‹epoch_float›"},
         {"messages": [{"client_msg_id": "‹uuid›", "ts": "‹epoch_float›", "user": "U0‹alphanumeric10›", "text": "rolled ‹service› back to ‹version›, run ‹number10›"}], "response_metadata": {"next_cursor": "bmV4dF90czox‹number9›"}}),
    Tool("grep", {"pattern": "limit", "path": "src"}, "src/‹service›/a.py:‹line›:    LIMIT = ‹number10›\nsrc/‹service›/b.ts:‹line›:  const id = '‹hex24›';\n"),
    Tool("workflow_runs", {"repo": "acme/‹service›"},
         {"total_count": "‹count›#", "workflow_runs": [{"id": "‹number11›#", "check_suite_id": "‹number11›#", "run_number": "‹number4›#", "head_sha": "‹sha1›", "node_id": "WFR_kwLO‹id20›"}]}),
    Tool("pages_insights", {"page": "1000‹number11›"}, {"data": [{"id": "1000‹number11›_‹number15›", "reach": "‹number7›#", "media_id": "178‹number14›"}]}),
    Tool("video_info", {"id": "‹id12›"}, {"viewCount": "‹number10›", "likeCount": "‹number7›", "itag": "‹number_2_to_60›#", "contentLength": "‹number9›", "expire": "‹epoch›"}),
    Tool("read_sheet", {"range": "A1:D‹number_2_to_60›"}, "id,ean,stock,checked\n‹number9›,‹number13›,‹count›,‹date›\n‹number9›,‹number13›,‹count›,‹date›\n‹number10›,‹number13›,‹count›,‹date›\n"),
    Tool("plan", {"goal": "update ‹service›", "steps": ["read ‹code_path›", "bump to ‹version›", "run job ‹number10›"]}, "ok: plan ‹uuid› stored as ‹number17›"),
    Tool("disk_usage", {}, "/dev/sda‹digit› ‹number12› ‹number11› ‹number12› ‹number_2_to_60›% /\ntmpfs ‹number10› ‹number8› ‹number10› ‹digit›% /run\n"),
    Tool("lookup_tweet", {"id": "1‹number18›"}, {"data": {"id": "1‹number18›", "conversation_id": "1‹number18›", "author_id": "‹number9›", "edit_history": ["1‹number18›"]}}),
    Tool("get_build", {"build": "‹number6›"}, "Build ‹number6› #‹number8›\ncommit ‹sha1›\nartifact ‹service›-‹version›+‹number8›.‹short_sha›.whl (‹comma_grouped› bytes)\ncache key: ‹service›-linux-‹sha256›"),
    Tool("list_parts", {"upload_id": "‹id24›‹id24›"}, [{"part": "‹digit›#", "etag": "‹md5›-‹number_2_to_60›", "size": "‹number8›#"}]),
)  # fmt: skip
