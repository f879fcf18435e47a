"""Formats of credentials that announce themselves by a prefix or a frame, and names whose values are credentials.

Facts are those of the issuers' documentation: GitHub "About authentication" (prefixes and lengths), AWS IAM "Unique
identifiers", Hugging Face "User access tokens", Google Cloud "API keys" and "Service account keys", Azure "Storage
account keys" and "SAS", GitLab "Token overview", Slack "Token types", W&B "API keys" (40 hexadecimal digits, about 86
characters since version 0.22.3), NVIDIA NGC "API keys", RFC 6750, 7468, 7519 and 7617.
"""

from __future__ import annotations

B64URL = "[A-Za-z0-9_-]"

FORMATS: tuple[tuple[str, str, str], ...] = (
    ("Hugging Face token", "hf_|api_org_", "[A-Za-z0-9]{30,}"),
    ("W&B key", "wandb_v1_", f"{B64URL}{{40,}}"),
    ("W&B key", "local-", "[0-9a-f]{40}(?![0-9a-f])"),
    ("AWS key id", "AKIA|ASIA|ABIA|ACCA", "[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("AWS Bedrock key", "ABSK", "[A-Za-z0-9+/]{100,}={0,2}"),
    ("AWS session token", "IQoJb3JpZ2lu|FwoGZXIvYXdz", "[A-Za-z0-9+/%]{60,}={0,2}"),
    ("GCP API key", "AIza", f"{B64URL}{{35}}"),
    ("GCP access token", r"ya29\.", "[A-Za-z0-9_.-]{20,}"),
    ("GCP refresh token", "1//0", f"{B64URL}{{40,}}"),
    ("GCP client secret", "GOCSPX-", f"{B64URL}{{24,}}"),
    ("GitHub token", "gh[pousr]_", "[A-Za-z0-9]{36,}"),
    ("GitHub token", "github_pat_", "[A-Za-z0-9_]{40,}"),
    ("GitLab token", "gl(?:pat|ptt|dt|rt|cbt|ft|oas|imt|agent|soat|ffct)-|GR1348941", "[A-Za-z0-9_.-]{20,}"),
    ("Slack token", "xox[a-z]-|xapp-|xoxe[.]xox[bp]-", "[A-Za-z0-9-]{10,}"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/", "[A-Za-z0-9/_-]{16,}"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/", "[0-9]{15,}/[A-Za-z0-9_-]{30,}"),
    ("Anthropic key", "sk-ant-", f"{B64URL}{{32,}}"),
    ("OpenRouter key", "sk-or-v1-", "[0-9a-f]{40,}"),
    ("OpenAI key", "sk-(?:proj|svcacct|admin|None)-", f"{B64URL}{{32,}}"),
    ("OpenAI key", "sk-", f"(?={B64URL}{{0,80}}[0-9]){B64URL}{{32,}}"),
    ("NGC key", "nvapi-", f"{B64URL}{{40,}}"),
    ("Neptune token", "eyJhcGlfYWRkcmVzcyI6|eyJhcGlfdXJsIjo", "[A-Za-z0-9_+/=-]{20,}"),
    ("JWT", "eyJ", f"{B64URL}{{8,}}[.]eyJ{B64URL}{{8,}}(?:[.]{B64URL}*)?"),
    ("JWT", "eyJhbGciOi", "[A-Za-z0-9_.-]{30,}"),
    ("Databricks token", "dapi", "[0-9a-f]{32}(?:-[0-9])?"),
    ("Groq key", "gsk_", "[A-Za-z0-9]{40,}"),
    ("xAI key", "xai-", "[A-Za-z0-9]{60,}"),
    ("Perplexity key", "pplx-", "[A-Za-z0-9]{40,}"),
    ("Replicate token", "r8_", "[A-Za-z0-9]{36,}"),
    ("LangSmith key", "lsv2_(?:pt|sk)_", "[0-9a-f]{32}_[0-9a-f]{10}"),
    ("Kaggle token", "KGAT_", "[0-9a-f]{32}"),
    ("Docker token", "dckr_(?:pat|oat)_", f"{B64URL}{{24,}}"),
    ("PyPI token", "pypi-AgE", f"{B64URL}{{50,}}"),
    ("npm token", "npm_", "[A-Za-z0-9]{36}"),
    ("Stripe key", "[sr]k_(?:live|test)_", "[A-Za-z0-9]{20,}"),
    ("SendGrid key", r"SG\.", f"{B64URL}{{20,24}}[.]{B64URL}{{40,45}}"),
    ("DigitalOcean token", "do[por]_v1_", "[0-9a-f]{64}"),
    ("Vault token", r"hv[sbr]\.", f"{B64URL}{{24,}}"),
    ("age key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}"),
)
"""Kind, pattern of the prefix (which stays), pattern of the secret after it."""

FRAMES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # The whole block, its line ends real or escaped; of a text that is cut, up to its end.
    (
        "private key",
        ("-----begin",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<secret>(?:[A-Za-z0-9+/=\s\\:,.()-](?!-----END))*"
        r"[A-Za-z0-9+/=\s\\:,.()]?)",
    ),
    ("Azure key", ("==",), r"(?<![A-Za-z0-9+/])(?P<secret>[A-Za-z0-9+/]{86}==)"),
    ("Azure SAS", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9%+/_-]{20,})"),
    ("Azure client secret", ("q~",), r"(?<![\w~.-])[A-Za-z0-9_~.]{3}(?P<secret>[0-9]Q~[A-Za-z0-9_~.-]{31,34})"),
    ("Telegram token", (":aa",), r"(?<![0-9])[0-9]{8,10}:(?P<secret>AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    (
        "W&B key",
        ("key",),
        r"(?i)(?<![a-z])(?:wandb|w&b|api)(?![a-z])[^\n]{0,80}?keys?(?![a-z])[^\n]{0,100}?\b(?P<secret>[0-9a-f]{40})\b",
    ),
    ("W&B key", ("wandb",), r"(?i)\bwandb['\", .]{1,4}login\b[^\n]{0,80}?[ '\"](?P<secret>[0-9a-f]{40})\b"),
    (
        "authorization",
        ("authorization",),
        r"(?i)authorization['\"\\\])]{0,6}\s{0,3}[:=,]\s{0,3}[b'\"\\]{0,4}"
        r"(?:(?:bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)\s+|(?=[^\s'\"]{0,99}[0-9]))"
        r"(?P<secret>(?![\[*<$]|(?:none|null|true|false|bearer|basic|token|apikey|digest|negotiate)\b)"
        r"[^\s'\"\\,)}\]`]{6,})",
    ),
    (
        "authorization",
        ("bearer ", "basic "),
        r"(?i)\b(?:bearer|basic)\s+(?P<secret>(?=[a-z0-9._~+/-]{0,40}[0-9])[a-z0-9._~+/-]{12,}={0,2})",
    ),
    (
        "cookie",
        ("cookie",),
        r"(?i)\b(?:set-)?cookie['\"\\]{0,3}:\s*['\"\\]{0,3}(?P<secret>[\w.-]{1,60}=[^\s'\"\\]{8,}[^\n'\"\\]*)",
    ),
    ("password", ("machine ",), r"(?i)\bmachine\s+\S{1,99}\s+login\s+\S{1,99}\s+password\s+(?P<secret>[^\s\[|]+)"),
    ("password", ("password ",), r"(?i)^\s*password\s+(?P<secret>[^\s\[:=.|]\S*)\s*$"),
    (
        "password",
        ("curl ", "wget "),
        r"(?i)\b(?:curl|wget)\b[^\n]{0,400}?\s(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,100}:(?P<secret>[^\s'\"\[]+)",
    ),
    (
        "password",
        ("sshpass ", " login "),
        r"(?i)\b(?:sshpass|(?:docker|podman|helm|registry) login)\b[^\n]{0,300}?\s-p\s*(?P<secret>[^\s\[]{4,})",
    ),
)
"""Kind, small-letter literals one of which the text has, and pattern with a group `secret`, which alone is replaced."""

_BEFORE_KEY = (
    "access account admin anthropic api app auth aws azure client cohere comet deploy encryption gcp gemini "
    "google groq hf huggingface kaggle langsmith license master mistral neptune ngc nvidia openai private secret "
    "service shared signing ssh storage subscription together vault wandb webhook"
)
KEY_OWNERS = tuple(_BEFORE_KEY.split())
"""In front of `key`, a name whose value is a credential; other keys are not."""

_OWNERS = (
    "aad access admin aim anthropic api app auth aws azure bearer bot ci civitai clearml cohere comet consul csrf "
    "dashboard databricks datadog deploy discord docker face gcp gh ghcr github gitlab google groq hf hub "
    "huggingface hugging id jenkins job jupyter jwt k8s login mlflow modal mistral neptune ngc npm nvidia oauth "
    "oauth2 openai personal private pypi ray read refresh registry replicate root sas secret security sentry "
    "service session slack sonar storage telegram tracking upload user vault wandb webhook write xsrf"
)
TOKEN_OWNERS = frozenset(_OWNERS.split())
"""In front of `token`, a name whose value is a credential; that of `eos_token` is one only if it looks so."""

ISSUERS: tuple[tuple[str, str], ...] = (
    *(("wandb", "W&B"), ("hugging", "Hugging Face"), ("hf", "Hugging Face"), ("aws", "AWS"), ("azure", "Azure")),
    *(("accountkey", "Azure"), ("google", "GCP"), ("gcp", "GCP"), ("github", "GitHub"), ("gh", "GitHub")),
    *(("gitlab", "GitLab"), ("slack", "Slack"), ("openai", "OpenAI"), ("anthropic", "Anthropic"), ("comet", "Comet")),
    *(("neptune", "Neptune"), ("mlflow", "MLflow"), ("ngc", "NGC"), ("nvidia", "NGC"), ("kaggle", "Kaggle")),
)
"""Part of a name, and the issuer that it stands for."""

_REMARKS = (
    "none null nil true false undefined unset unknown empty missing invalid required optional incorrect wrong "
    "expired not no yes is was are for must of the in to a an str string bytes int bool type default placeholder "
    "redacted hidden masked removed todo changeme example field error failed prompt auto env environment"
)
NOT_SECRET = frozenset(_REMARKS.split())
"""Values, in lower case, that say something about a credential."""
