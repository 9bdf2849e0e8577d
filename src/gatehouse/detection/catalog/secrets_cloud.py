"""Patterns for secrets of clouds, code hosts, package registries, and services that run on clouds."""

from gatehouse.detection.catalog.assignment import ASSIGNMENT, SPACED_ASSIGNMENT, named
from gatehouse.detection.catalog.example_tokens import BASE36_LOWER, BASE36_UPPER, HEX, random_characters
from gatehouse.detection.catalog.shapes import secret, shape, vendor
from gatehouse.detection.validators import both
from gatehouse.detection.validators.secrets import assigned_key, crc32_base62, token

PATTERNS = (
    secret(
        "aws_access_key",
        "AWS access key",
        vendor(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", bits=0.8),
        vendor(r"A3T[A-Z0-9]{17}\b", bits=0.8),
        shape(
            rf"(?:aws|amazon|s3)[\w.\-]{{0,12}}secret[\w.\-]{{0,12}}{ASSIGNMENT}(?P<value>[A-Za-z0-9/+=]{{36,44}})",
            0.9,
            token(3.5),
            ignore_case=True,
        ),
        shape(r"\bABSK[A-Za-z0-9+/]{109,269}={0,2}", 0.95, token(2.0), opening="ABSK"),
        # A value in quotes after a name that contains a word for a key.
        shape(
            r"aws[^\n\"']{0,20}(?:key|pwd|pass|token)[^\n\"']{0,20}[\"'](?P<value>[A-Za-z0-9/+]{40})[\"']",
            0.9,
            token(3.5),
            ignore_case=True,
        ),
        shape(r"\bamzn\.mws\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", 0.95, token(2.5)),
        shape(r"\bbedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", 0.95),
        shape(
            rf"aws_session_token{ASSIGNMENT}(?P<value>[A-Za-z0-9/+=]{{80,800}})",
            0.9,
            token(3.5),
            opening="aws_session_token",
        ),
        examples=(
            "AKIA" + random_characters(16, BASE36_UPPER),
            "aws_secret_access_key = " + random_characters(40),
            "ABSK" + "QmVkcm9ja0FQSUtleS1" + random_characters(110) + "=",
        ),
        counterexamples=(
            "akia" + random_characters(16, BASE36_LOWER),
            "AKIA" + random_characters(30, BASE36_UPPER),
            "aws_secret_access_key = ${SECRET}",
        ),
    ),
    secret(
        "google_api_key",
        "Google API key",
        shape(r"\b(?P<value>AIza[\w\-]{35})(?:[^\w\-]|$)", 0.9, token(3.0)),
        vendor(r"GOCSPX-[\w\-]{28}\b"),
        shape(r"\bya29\.[\w\-]{30,500}", 0.9, token(3.0), opening="ya29."),
        examples=(
            "key=AIza" + random_characters(35),
            "GOCSPX-" + random_characters(28),
            "ya29." + random_characters(120),
        ),
        counterexamples=("AIza" + "a" * 35, "AIza" + random_characters(20)),
    ),
    secret(
        "azure_secret",
        "Azure secret",
        shape(r"(?:^|[^\w~.\-])(?P<value>[\w~.\-]{3}\dQ~[\w~.\-]{31,34})(?:[^\w~.\-]|$)", 0.9, token(3.3)),
        shape(r"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)", 0.95, token(3.5), opening="AccountKey="),
        shape(r"SharedAccessKey=(?P<value>[A-Za-z0-9+/]{43}=)", 0.95, token(3.5), opening="SharedAccessKey="),
        shape(r"[?&]sig=(?P<value>[A-Za-z0-9%+/]{43,60}(?:=|%3[Dd]))", 0.8, token(3.5)),
        examples=(
            "client_secret=" + random_characters(3) + "8Q~" + random_characters(34),
            "AccountKey=" + random_characters(86) + "==",
            "SharedAccessKey=" + random_characters(43) + "=",
        ),
        counterexamples=(
            "AccountKey=" + random_characters(20),
            "client_secret=" + random_characters(3) + "8Q~" + "x" * 34,
        ),
    ),
    secret(
        "github_token",
        "GitHub token",
        shape(r"\bgh[pousr]_[A-Za-z0-9]{36}\b", 0.95, both(token(3.0), crc32_base62)),
        vendor(r"ghr_[A-Za-z0-9]{76}\b|github_pat_\w{82}\b", bits=3.0),
        named(r"github", r"[0-9a-f]{40}"),
        examples=("ghp_" + random_characters(36), "github_pat_" + random_characters(22) + "_" + random_characters(59)),
        counterexamples=("ghp_" + "x" * 36, "ghz_" + random_characters(36)),
    ),
    secret(
        "gitlab_token",
        "GitLab token",
        vendor(r"gl(?:pat|dt|ft|oas|soat|rt|cbt|ptt|imt|agent|ffct|wt)-[\w\-]{20,64}(?:\.[\w]{2}\.?[\w]{7,9})?"),
        vendor(r"gl(?:pat|rt)-(?:t\d_)?[\w\-]{27,100}\.[0-9a-z]{2}\.?[0-9a-z]{7}\b"),
        vendor(r"GR1348941[\w\-]{20,50}", bits=3.0),
        shape(r"_gitlab_session=(?P<value>[0-9a-z]{32})\b", 0.9, token(3.0)),
        examples=(
            "glpat-" + random_characters(20),
            "GR1348941" + random_characters(20),
            "glrt-" + random_characters(20),
        ),
        counterexamples=("glpat_" + random_characters(20), "glpat-" + "x" * 20),
    ),
    secret(
        "atlassian_token",
        "Atlassian or Bitbucket token",
        shape(r"\bATATT3[A-Za-z0-9_\-=]{180,260}", 0.95, token(3.5), opening="ATATT3"),
        vendor(r"AT(?:CTT|BB|OA)[A-Za-z0-9_\-=]{20,110}"),
        named(r"atlassian|confluence|jira|bitbucket", r"[\w=\-]{20,64}"),
        examples=("ATATT3" + random_characters(186), "jira_token: " + random_characters(24, BASE36_LOWER)),
        counterexamples=("getPagesInConfluenceSpace,searchConfluenceUsingCql", "jira_url = https://jira.corp"),
    ),
    secret(
        "package_registry_token",
        "Package or container registry token",
        shape(r"\bnpm_[A-Za-z0-9]{36}\b", 0.95, both(token(3.0), crc32_base62)),
        shape(r"//[\w.\-/:]{3,48}/:_authToken=\s?(?P<value>[\w\-+/=]{16,60})", 0.95, token(2.5)),
        shape(r"\bpypi-AgE[\w\-]{50,1000}", 0.95, token(3.0), opening="pypi-AgE"),
        vendor(
            r"rubygems_[a-f0-9]{48}\b|dckr_[po]at_[\w\-]{27,40}|oy2[a-z0-9]{43}\b|hackage_[a-z0-9]{32}\b|cio[a-zA-Z0-9]{32}\b"
        ),
        vendor(r"CLOJARS_[a-z0-9]{60}\b"),
        vendor(r"AKC[A-Za-z0-9]{40,72}\b|cmVmd[A-Za-z0-9]{59}\b", bits=3.0),
        named(r"jfrog|artifactory|bintray|artif-|xray", r"(?:AKC|AP[\dA-F])[A-Za-z0-9]{8,56}|[a-z0-9]{64}"),
        examples=(
            "npm_" + random_characters(36),
            "//registry.npmjs.org/:_authToken=" + random_characters(36, HEX),
            "pypi-AgE" + random_characters(150),
            "rubygems_" + random_characters(48, HEX),
            "dckr_pat_" + random_characters(27),
        ),
        counterexamples=("//registry.npmjs.org/:_authToken=${NPM_TOKEN}", "pypi-AgE" + random_characters(20)),
    ),
    secret(
        "hosting_token",
        "Hosting or DNS provider token",
        vendor(r"do[opr]_v1_[a-f0-9]{64}\b"),
        vendor(
            r"HRKU-[\w\-]{36,60}|nf[pc]_[A-Za-z0-9]{36,40}\b|rnd_[A-Za-z0-9]{32}\b|tk-us-[\w\-]{48}|4b1d[A-Za-z0-9]{38}\b"
        ),
        vendor(r"pscale_(?:tkn|pw|oauth)_[\w=.\-]{32,64}", bits=3.0),
        vendor(r"sb[ps]_[a-f0-9]{40}\b|LTAI[A-Za-z0-9]{16,26}\b|napi_[a-z0-9]{60,64}\b"),
        vendor(r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,146}\b", opening="v1.0-"),
        vendor(r"AQVN[\w\-]{35,38}\b", bits=3.5),
        shape(
            rf"yandex[\w .\-]{{0,16}}{ASSIGNMENT}(?P<value>t1\.[A-Z0-9a-z_-]{{1,64}}[=]{{0,2}}\.[A-Z0-9a-z_-]{{86}})",
            0.9,
            token(3.0),
            opening="yandex",
        ),
        shape(r"\bt1\.9eu[A-Z0-9a-z_-]{1,64}={0,2}\.[A-Z0-9a-z_-]{86}={0,2}", 0.9, token(3.0), opening="t1."),
        shape(r"\bfo1_[\w\-]{43}\b|\bfm(?:1[ar]|[12])_[\w+/=\-]{40,110}", 0.9, token(3.0)),
        named(
            r"heroku|netlify|vercel|cloudflare|digitalocean|linode|vultr|hetzner|fastly|ovh|render|railway|alibaba|aliyun"
            r"|tencent|scaleway|scalingo|godaddy|namecheap|ibm|softlayer|cloudant|ibmcos",
            r"[\w=.\-]{16,64}",
        ),
        shape(
            r"(?:cloudant|clou_|clou-|\bcl_api|\bcl-api|\bcl_key|\bcl-key|\bcl_p|\bcl-p|\bcl_token|\bcl-token)"
            rf"[\w .\-]{{0,16}}(?:{ASSIGNMENT}|{SPACED_ASSIGNMENT})"
            r"(?P<value>[a-z]{24}|[0-9a-f]{64})(?:[^\w\-]|$)",
            0.8,
            token(3.0),
            ignore_case=True,
        ),
        named(
            r"\b(?:ibm|cloud_?-?(?:iam|api|key|token|pass)|cos_|cos-|clou_|clou-|slapi|sl_api|sl-api|sl_key|sl-key|sl_pass|sl-pass|iam_|iam-)",
            r"[\w\-]{24,64}",
            bits=2.5,
        ),
        shape(r"api\.softlayer\.com/soap/v\d(?:\.\d)?/(?P<value>[0-9a-z]{64})\b", 0.9, token(2.0), ignore_case=True),
        examples=(
            "dop_v1_" + random_characters(64, HEX),
            "pscale_tkn_" + random_characters(43),
            "heroku_key: " + random_characters(36, HEX),
            "CLOUDFLARE_API_KEY=" + random_characters(37, HEX),
        ),
        counterexamples=("cloudflare: https://dash.cloudflare.com/1234", "dop_v1_" + "x" * 64),
    ),
    secret(
        "devops_token",
        "Build, deployment or secret store token",
        vendor(r"hv[sbr]\.[\w\-]{24,120}", bits=3.2),
        shape(r"(?:^|[^\w.])(?P<value>s\.[A-Za-z0-9]{24})(?:[^\w.(\[]|$)", 0.8, assigned_key(3.5)),
        vendor(r"snyk_[us]at\.[0-9a-f]{8}\.[\w\-]{60,90}", bits=3.5),
        vendor(r"[A-Za-z0-9]{14}\.atlasv1\.[\w=\-]{60,70}", bits=3.5),
        vendor(r"dapi[a-f0-9]{32}(?:-\d)?\b|pul-[a-f0-9]{40}\b|dkea[a-f0-9]{32}\b"),
        vendor(r"dp\.(?:pt|st|ct|sa|scim)\.[\w.\-]{40,70}"),
        vendor(
            r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b", bits=3.3
        ),
        shape(r"\bops_eyJ[A-Za-z0-9+/]{200,900}={0,3}", 0.95, token(3.5), opening="ops_eyJ"),
        vendor(r"AGE-SECRET-KEY-1[0-9A-Z]{58}\b", bits=1.0),
        vendor(r"sha256~[\w\-]{43}\b", bits=3.5),
        vendor(r"API-[A-Z0-9]{26}\b", bits=3.3, score=0.8),
        shape(r"(?:^|[^\w.\-])(?P<value>ico-[a-zA-Z0-9]{32})\b", 0.8, token(3.5)),
        vendor(
            r"bkua_[a-f0-9]{40}\b|CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}\b|tskey-[a-z]{3,6}-[\w\-]{16,64}|akuity_[\w]{30,64}"
        ),
        named(
            r"databricks|terraform|atlas|drone(?:ci)?|travis(?:ci)?|circle(?:ci)?|jenkins|codecov|sonar(?:qube|cloud)?|snyk"
            r"|octopus|buildkite|pulumi|vault|doppler|[^a-z]meraki|docker",
            r"[\w=.\-]{16,64}",
        ),
        examples=(
            "hvs." + random_characters(90),
            "dapi" + random_characters(32, HEX),
            "sha256~" + random_characters(43),
            random_characters(14) + ".atlasv1." + random_characters(64),
            "travis_token = '" + random_characters(22, BASE36_LOWER) + "'",
        ),
        counterexamples=("hvs." + "x" * 90, "s.AcceptanceTimeoutSeconds", "API-2022"),
    ),
)
