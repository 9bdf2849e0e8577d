"""Patterns for secrets of services: chat, payment, mail, models, monitoring, and others."""

from gatehouse.detection.catalog.assignment import named
from gatehouse.detection.catalog.example_tokens import BASE36_LOWER, BASE36_UPPER, HEX, random_characters
from gatehouse.detection.catalog.shapes import secret, shape, vendor
from gatehouse.detection.validators.secrets import token

PATTERNS = (
    secret(
        "slack_token",
        "Slack token or webhook",
        shape(r"\bxox[abeoprs]-(?:\d-)?\d{5,14}(?:-\d{5,14}){0,2}-[A-Za-z0-9]{8,40}", 0.95, token(2.5)),
        vendor(r"xox[ar]-(?:\d-)?[A-Za-z0-9]{16,48}\b", bits=3.3),
        shape(r"\bxoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{120,260}", 0.95, token(3.0), opening="xoxe"),
        shape(r"\bxapp-\d-[A-Za-z0-9]{5,16}-\d{5,16}-[A-Fa-f0-9]{20,72}", 0.95, token(2.5), ignore_case=True),
        shape(
            r"hooks\.slack\.com/(?:services|workflows|triggers)/"
            r"(?P<value>[A-Z]\w{7,12}/\w{8,14}/\w{16,34}(?:/\w{20,28})?)",
            0.9,
        ),
        examples=(
            "xox"
            + "b-"
            + random_characters(12, "123456789")
            + "-"
            + random_characters(13, "123456789")
            + "-"
            + random_characters(24),
            "https://hooks.slack.com/services/T"
            + random_characters(8, BASE36_UPPER)
            + "/B"
            + random_characters(8, BASE36_UPPER)
            + "/"
            + random_characters(24),
        ),
        counterexamples=("xoxb-my-bot-token", "xoxb-xxxxxxxxx-xxxxxxxxxx-xxxxxxxxxxxx"),
    ),
    secret(
        "discord_token",
        "Discord token or webhook",
        vendor(r"[MNO][A-Za-z\d_\-]{23,25}\.[A-Za-z\d_\-]{6}\.[A-Za-z\d_\-]{27,38}", bits=3.8),
        shape(r"discord(?:app)?\.com/api/webhooks/(?P<value>\d{17,20}/[\w\-]{60,72})", 0.95, token(3.5)),
        named(r"discord", r"[a-f0-9]{64}|[\w=\-]{32}"),
        named(r"discord[\w.\-]{0,8}(?:client|application|app)", r"\d{17,20}", bits=2.0),
        examples=(
            "M" + random_characters(23) + "." + random_characters(6) + "." + random_characters(38),
            "discord_client_secret = " + random_characters(32),
        ),
        counterexamples=(
            "discord=" + "0" * 32,
            "M" + random_characters(10) + "." + random_characters(6) + "." + random_characters(27),
        ),
    ),
    secret(
        "telegram_token",
        "Telegram bot token",
        shape(r"(?:^|[^\w:]|bot)(?P<value>\d{5,16}:A[\w\-]{34})(?:[^\w\-]|$)", 0.9, token(3.3)),
        examples=("TELEGRAM_BOT=" + random_characters(9, "123456789") + ":A" + random_characters(34),),
        counterexamples=(
            "arn:aws:sns:aaa:111122223333:" + "a" * 35,
            random_characters(9, "123456789") + ":B" + random_characters(34),
        ),
    ),
    secret(
        "twilio_key",
        "Twilio or messaging provider key",
        vendor(r"(?:SK|AC)(?:[0-9a-z]{32}|[0-9A-Fa-f]{32})\b", bits=2.8),
        named(
            r"twilio|messagebird|message_bird|message-bird|plivo|vonage|nexmo|sendbird|pusher|gitter|rapidapi|rapid_api"
            r"|rapid-api|stytch",
            r"[\w\-]{16,60}",
        ),
        examples=("SK" + random_characters(32, HEX), "messagebird_api_key = " + random_characters(25, BASE36_LOWER)),
        counterexamples=("SK" + random_characters(10, HEX), "SK" + "x" * 32),
    ),
    secret(
        "stripe_key",
        "Stripe key",
        vendor(r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,99}\b", bits=2.8),
        vendor(r"whsec_[A-Za-z0-9+/=]{32,64}"),
        examples=("sk_" + "live_" + random_characters(24), "rk_" + "test_" + random_characters(24)),
        counterexamples=("task_test_" + random_characters(24), "sk_" + "live_" + "x" * 24),
    ),
    secret(
        "payment_key",
        "Payment or exchange provider key",
        vendor(r"sq0(?:atp|csp|idp)-[\w\-\\]{22,60}", bits=3.0),
        shape(r"(?:^|[^\w+/=\-])(?P<value>EAAA[\w+\-]{22,60})(?:[^\w+/\-]|$)", 0.9, token(3.3)),
        vendor(r"FLWSECK(?:_TEST-?|-)[a-zA-Z0-9]{12,34}(?:-X)?\b|FLWPUBK(?:_TEST)?-[a-zA-Z0-9]{32}-X\b"),
        vendor(r"EZ[AT]K[a-zA-Z0-9]{54}\b", bits=3.5),
        vendor(
            r"rzp_(?:live|test)_[A-Za-z0-9]{14}\b|access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}\b"
        ),
        vendor(
            r"access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
        ),
        vendor(r"(?:live|test)_(?:pub_)?[a-f0-9]{31,35}\b|live_[\w=\-]{40}\b", bits=3.0),
        shape(r"""["']secret_key["']\s{0,4}=>\s{0,4}["'](?P<value>sk_[\S]{29})["']""", 0.9, token(3.0)),
        named(
            r"paypal|braintree|plaid|flutterwave|paystack|razorpay|adyen|mollie|gocardless|coinbase|kraken|bittrex|kucoin"
            r"|binance|bitfinex|finicity|freshbooks|squareup|worldpay|klarna|easypost|lob[_\-]|square",
            r"[\w=+/.\-]{16,60}",
        ),
        examples=(
            "sq0" + "atp-" + random_characters(22),
            "FLWSECK_TEST-" + random_characters(12, HEX),
            "kraken_key = '" + random_characters(40) + "'",
        ),
        counterexamples=("sq0" + "atp-" + random_characters(5), "paypal_url = https://www.paypal.com/checkout/3"),
    ),
    secret(
        "openai_key",
        "OpenAI key",
        shape(r"\bsk-(?:proj|svcacct|admin)-[\w\-]{20,180}", 0.95, token(3.0), opening="sk-"),
        vendor(r"sk-(?:[A-Za-z0-9]{2,12}-)?[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b|sk-[A-Za-z0-9]{48}\b", bits=3.3),
        examples=(
            "sk-" + "proj-" + random_characters(74) + "T3BlbkFJ" + random_characters(74),
            "sk-" + random_characters(48),
        ),
        counterexamples=("sk-" + "x" * 48, "sk-learn-contributors-and-friends"),
    ),
    secret(
        "anthropic_key",
        "Anthropic key",
        shape(r"\bsk-ant-(?:api|admin|sid|oat)\d{2}-[\w\-]{93}AA\b", 0.95, token(3.3)),
        examples=("sk-ant-" + "api03-" + random_characters(93) + "AA",),
        counterexamples=("sk-ant-" + "api03-" + random_characters(40), "sk-ant-api03-your-key"),
    ),
    secret(
        "ai_provider_key",
        "Model provider key",
        vendor(r"hf_[A-Za-z]{34}\b|api_org_[A-Za-z]{34}\b", bits=3.3),
        vendor(r"gsk_[A-Za-z0-9]{52}\b|pplx-[A-Za-z0-9]{48}\b|r8_[A-Za-z0-9]{37}\b|xai-[A-Za-z0-9]{80}\b", bits=3.5),
        vendor(
            r"nvapi-[\w\-]{64}\b|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b|pcsk_[\w]{60,80}\b|csk-[a-z0-9]{48}\b",
            bits=3.3,
        ),
        vendor(
            r"fw_[A-Za-z0-9]{24}\b|tvly-[A-Za-z0-9\-]{32,40}\b|sk-or-v1-[a-f0-9]{64}\b|tgp_v1_[\w\-]{43}\b", bits=3.3
        ),
        named(
            r"hugging[_\- ]?face|cohere|\bco_api|mistral|groq|perplexity|replicate|together|deepseek|privateai"
            r"|private_ai|private-ai|elevenlabs|stability|pinecone|openrouter|fireworks|cerebras|assemblyai|assembly_ai|deepgram"
            r"|azure_?-?(?:openai|cognitive|speech|search|maps)",
            r"[\w\-]{32,64}",
        ),
        examples=(
            "hf_" + random_characters(34, "abcdefghijklmnopqrstuvwxyzABCDEF"),
            "gsk_" + random_characters(52),
            "cohere_api_key = '" + random_characters(40) + "'",
        ),
        counterexamples=("hf_" + "x" * 34, "hf_requiredCharacteristicTypesForDisplayMetadata"),
    ),
    secret(
        "mail_service_key",
        "Mail service key",
        vendor(r"SG\.[\w=\-]{16,32}\.[\w=\-]{32,64}|SG\.[\w=.\-]{66}"),
        vendor(r"[0-9a-z]{32}-us\d{1,2}\b", bits=2.8),
        vendor(
            r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}\b|(?:pub)?key-[a-f0-9]{32}\b"
        ),
        vendor(r"[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8}\b", bits=3.0),
        named(r"sendgrid|mailgun|mailchimp|mandrill|sendinblue|brevo|postmark|sparkpost|mailjet", r"[\w.\-]{16,60}"),
        examples=(
            "SG." + random_characters(22) + "." + random_characters(43),
            random_characters(32, HEX) + "-us12",
            "xkeysib-" + random_characters(64, HEX) + "-" + random_characters(16),
        ),
        counterexamples=(
            "SG." + random_characters(5) + "." + random_characters(5),
            random_characters(32, HEX) + "-eu1",
        ),
    ),
    secret(
        "shopify_token",
        "Shopify token",
        vendor(r"shp(?:at|ca|pa|ss|ua|tka)_[a-fA-F0-9]{32}\b"),
        examples=("shp" + "at_" + random_characters(32, HEX),),
        counterexamples=("shp" + "at_" + random_characters(12, HEX),),
    ),
    secret(
        "observability_token",
        "Monitoring service token",
        vendor(r"glc_[A-Za-z0-9+/]{32,110}={0,3}", bits=3.0),
        vendor(r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b", bits=3.0),
        shape(r"\beyJrIjoi[A-Za-z0-9+/]{60,400}={0,3}", 0.95, token(3.0), opening="eyJrIjoi"),
        vendor(r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b|[0-9a-f]{36}NRAL\b", bits=3.0),
        vendor(r"NR(?:AK|II|AA|RA|JS)-[A-Za-z0-9_\-]{16,40}|dt0[a-z]\d{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}\b"),
        vendor(r"sntryu_[a-f0-9]{64}\b|sq[uap]_[A-Za-z0-9]{40}\b|phx_[A-Za-z0-9]{40,50}\b|hcaik_[a-z0-9]{58}\b"),
        shape(r"\bsntrys_eyJ[A-Za-z0-9+/=_]{80,400}", 0.95, token(3.0), opening="sntrys_eyJ"),
        named(
            r"datadog|newrelic|new_relic|new-relic|sentry|dynatrace|grafana|honeycomb|logz|loggly|splunk|rollbar|bugsnag|sumo"
            r"|opsgenie|pagerduty|maxmind|amplitude",
            r"su[A-Za-z0-9]{12}\b|[\w=.+/\-]{16,64}",
        ),
        examples=(
            "glc_" + random_characters(60),
            "NRAK-" + random_characters(27, BASE36_UPPER),
            "sntryu_" + random_characters(64, HEX),
            "datadog_key: " + random_characters(40, BASE36_LOWER),
        ),
        counterexamples=("glc_" + "1" * 40, "GLC_CreateLightmapTextureArray", "sntryu_" + "a" * 64),
    ),
    secret(
        "saas_token",
        "Business service token",
        vendor(r"secret_[A-Za-z0-9]{43}\b|ntn_\d{11}[A-Za-z0-9]{35}\b", bits=3.5),
        vendor(r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b", bits=3.5),
        vendor(r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}\b|PMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
        vendor(
            r"CFPAT-[\w\-]{43}\b|tfp_[\w\-.=]{59}|pat-(?:na|eu)\d-[a-f0-9\-]{36}\b|fio-u-[\w=\-]{64}|p8e-[a-z0-9]{32}\b"
        ),
        vendor(r"pk\.[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}\b|[ps]k\.eyJ[\w\-]{20,90}\.[\w\-]{22}\b", bits=3.5),
        vendor(r"sl\.[A-Za-z0-9_=\-]{60,120}", bits=3.5),
        vendor(r"shippo_(?:live|test)_[a-fA-F0-9]{40}\b|rdme_[a-z0-9]{70}\b|duffel_(?:test|live)_[\w=\-]{43}\b"),
        vendor(
            r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}\b|sm_[asp]at_[A-Za-z0-9]{16}\b|s-s4t2(?:ud|af)-[abcdef0-9]{64}\b"
        ),
        vendor(
            r"(?:pat_|patp_)[A-Za-z0-9]{40}\b|sdk-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}\b|ubdt_[\w]{30,60}",
            bits=3.3,
        ),
        vendor(
            r"pnu_[A-Za-z0-9]{36}\b|fig[dur]_[\w\-]{40,44}|vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}\b", bits=3.3
        ),
        vendor(r"[ps]at\.[\w\-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}\b|AVNS_[\w\-]{19}", bits=3.3),
        vendor(r"dnkey-[\w=\-]{26}-[\w=\-]{52}", bits=3.3),
        shape(
            r"\b(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_\-][A-Za-z0-9\-]{10,32}"
            r"\.[A-Za-z0-9+/_=\-]{30,40}",
            0.95,
            token(3.0),
        ),
        shape(
            r"\.webhook\.office\.com/webhookb2/(?P<value>[0-9a-z\-]{36}@[0-9a-z\-]{36}/\w{1,20}/[0-9a-z]{20,34})",
            0.95,
            token(3.0),
            opening=".webhook.office.com",
        ),
        # An app id and the secret of the app.
        shape(r"\b(?P<value>[1-9]\d{14,15}(?:\||%7C)[\w\-]{27})\b", 0.85, token(3.5)),
        shape(r"\bEAA[A-Z][A-Za-z0-9]{80,250}", 0.85, token(3.5), opening="EAA"),
        shape(r"\bAAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{60,110}", 0.85, opening="AAAAAAAAAAAAAAAAAAAAA"),
        named(
            r"adafruit|adobe|airtable|algolia|asana|beamer|clickup|contentful|dropbox|etsy|facebook|figma|flickr|frameio"
            r"|freemius|hubspot|intercom|intra42|launchdarkly|linkedin|linked_in|linked-in|looker|mapbox"
            r"|mattermost|mixpanel|notion"
            r"|nytimes|ny_times|ny-times|newyorktimes|new_york_times|new-york-times|finnhub|infracost"
            r"|cloudinary|spotify|giphy|openweather|auth0"
            r"|okta|postman|salesforce|segment|settlemint|shippo|sidekiq|sourcegraph|squarespace|strapi|supabase"
            r"|trello|twitch|twitter|typeform|webex|zoom|yandex|zoho|youtube|zendesk|lob[_\-]|confluent|linear",
            r"[\w=+.|\-]{14,60}",
            bits=2.2,
        ),
        examples=(
            "secret_" + random_characters(43),
            "pat" + random_characters(14) + "." + random_characters(64, HEX),
            "asana_secret='" + random_characters(32, BASE36_LOWER) + "'",
            "PMAK-" + random_characters(24, HEX) + "-" + random_characters(34, HEX),
        ),
        counterexamples=(
            *("notion_url = notion.so/my-page-with-words", "twitterHandle = jane_doe_the_writer"),
            *(
                "segment_id: " + random_characters(32, HEX),
                '"token": "${TOKEN}", "linear": "' + random_characters(32, HEX) + '"',
            ),
        ),
    ),
)
