"""Names under which trainers print our columns: one table for every reader of names that no dialect has stated.

A name is compared by its words (`words`): `tensorModelParallelSize`, `--tensor-model-parallel-size` and "Tensor model
parallel size" are one. Each column has expressions in the order of how sure they are; the whole name has to match.
Add a name here, not to a reader. Names of a framework's own configuration files are in `sidecars.column_names`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from sweepscope.pipeline.text.word_boundaries import ascii_bounded

_HUMP = re.compile(r"(?<=[a-z0-9])(?<![KMGT]i)(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
"""Where a word begins within one: `numGPUsPerNode` has four, `GiB` is one."""
_OTHER = re.compile(r"[^A-Za-z0-9%@]+")
_CHINESE = {
    "损失函数值": "loss",
    "损失值": "loss",
    "损失": "loss",
    "学习率": "learning rate",
    "梯度范数": "grad norm",
    "准确率": "accuracy",
    "困惑度": "perplexity",
    "可训练": "trainable",
    "训练": "train",
    "验证": "validation",
    "测试": "test",
    "评估": "evaluation",
    "当前": "current",
    "平均": "average",
    "迭代次数": "iteration",
    "迭代": "iteration",
    "步数": "step",
    "步": "step",
    "轮次": "epoch",
    "轮": "epoch",
    "全局": "global",
    "微批次": "micro batch",
    "微批": "micro batch",
    "批次大小": "batch size",
    "批大小": "batch size",
    "批次": "batch",
    "梯度累积步数": "gradient accumulation steps",
    "梯度累积": "gradient accumulation",
    "序列长度": "sequence length",
    "上下文长度": "context length",
    "最大": "max",
    "词汇表大小": "vocab size",
    "词表大小": "vocab size",
    "隐藏层维度": "hidden dim",
    "隐藏维度": "hidden dim",
    "注意力头数": "attention heads",
    "层数": "layers",
    "模型参数量": "model params",
    "模型参数": "model params",
    "模型": "model",
    "耗时": "time",
    "用时": "time",
    "时间": "time",
    "显存": "memory",
    "参数量": "params",
    "总参数": "total params",
    "参数总数": "total params",
    "参数总量": "total params",
    "数据并行": "data parallel",
    "张量并行": "tensor parallel",
    "模型并行": "model parallel",
    "流水线并行": "pipeline parallel",
    "流水并行": "pipeline parallel",
    "专家并行": "expert parallel",
    "上下文并行": "context parallel",
    "序列并行": "sequence parallel",
    "并行": "parallel",
    "大小": "size",
    "吞吐量": "throughput",
    "吞吐": "throughput",
    "节点数": "nodes",
    "卡数": "gpus",
    "总": "total",
}
"""Words of trainers that print Chinese; a longer one stands in front of those that it begins with."""
_CHINESE_WORD = re.compile("|".join(_CHINESE))
_PER_SECOND = re.compile(r"/\s?(?=(?:s|secs?|seconds?)(?![A-Za-z]))")
"""A slash that tells a rate (`steps/sec`) from a time (`step_sec`)."""

_PER_DEVICE = re.compile(r"(?i)(?<=/s|ps)/dev(?![a-z])")
"""`tok/s/dev` and `TFLOPs/dev` are of a device; alone, `dev` is an evaluation."""

_SIZE = r"(?: (?:size|degree|world size|dim|ways?|num|count|groups?))?"
_PER_GPU = r"per (?:device|gpu|rank|process|worker|core|chip|card|accel(?:erator)?|npu)"

CAPACITY = r"max position embeddings|(?:n|max) positions|n ctx|max seq length of model"
"""Positions that a model has: sequences of a training are as long at most."""

DEVICE = r"(?:gpu|device|chip|rank|accel(?:erator)?|card|npu|hpu|xpu|tpu|gcd)"
"""What a rate is of, in small letters."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "tp": (rf"(?:tensor (?:model )?parallel(?:ism|ize)?|tp){_SIZE}", rf"model parallel{_SIZE}"),
    "pp": (rf"(?:pipeline (?:model )?parallel(?:ism)?|pp){_SIZE}|(?:num |n )?pipeline stages|num stages|pipe size",),
    "cp": (rf"(?:context parallel(?:ism)?|cp){_SIZE}", r"(?:ulysses |ring )?(?:sequence parallel|sp) (?:size|degree)"),
    "ep": (rf"(?:expert (?:model )?parallel(?:ism)?|ep){_SIZE}",),
    "dp": (rf"(?:data parallel(?:ism)?|dp){_SIZE}", r"(?:num )?data parallel replicas"),
    # Of HSDP, whose product is dp.
    "dp_shard": (r"(?:dp|data parallel|fsdp|hsdp) shards?(?: degree| size| group size)?",),
    "dp_replicate": (r"(?:dp|data parallel|ddp|fsdp|hsdp) replicat(?:e|ion)(?: degree| size)?|(?:fsdp|hsdp) replicas",),
    "vpp": (r"virtual pipeline (?:model )?parallel size|vpp(?: size)?",),
    "mbs": (
        rf"(?:train )?(?:micro ?batch|mbs|micro bsz?|micro ?batch size)(?: size)?(?: {_PER_GPU})?|"
        rf"{_PER_GPU} (?:train )?(?:micro )?(?:batch size|bs)|(?:device|local) (?:train )?(?:micro ?)?batch ?size|"
        rf"(?:train )?(?:micro )?batch(?: ?size)? {_PER_GPU}|bs {_PER_GPU}|{_PER_GPU} batch|"
        rf"(?:instantaneous )?batch size {_PER_GPU}|"
        r"micro (?:seqs|sequences|samples)|micro train batch size|device train microbatch size|"
        r"(?:samples|imgs|images|videos) per gpu|"
        r"batch gpu",
        r"micro",
    ),
    "gbs": (
        r"(?:train(?:ing)? )?(?:global|effective|total)(?: train(?:ing)?)? (?:batch ?size|batch|bsz?)"
        r"(?: (?:in )?(?:seqs?|sequences|samples))?|gbs|global bsz?|global (?:seqs|sequences|samples)|"
        r"total train batch size w parallel distributed accumulation|global train batch size",
    ),
    "gas": (
        r"(?:grad(?:ient)?s? )?acc(?:um(?:ulat(?:ion|e))?)?(?: (?:steps?|iters?|freq|factor))|"
        r"grad(?:ient)? acc(?:um(?:ulation)?)?|gas|accumulate grad batches|update freq|"
        r"accum(?:ulate)?(?: grad(?:ient)?s?)? (?:iters?|iterations|steps?)|accum(?:ulation|ulate)?|grad accs?",
        r"num micro ?batches|(?:number of )?micro ?batches|ga",
    ),
    "seq_len": (
        r"(?:train(?:ing)? )?(?:max )?(?:seq(?:uence)?|encoder seq) ?(?:len(?:gth)?)|seqlen|"
        r"(?:max )?(?:context|ctx) ?(?:len(?:gth)?|size|window)|cutoff len|tokens per sample|max source length",
        r"block size|max length|max len|max seq|seq(?:uence)?|model max length|max tokens per sample|sl|ctx|context",
        CAPACITY,
    ),
    "gbs_tokens": (
        r"(?:num |n )?tokens per (?:step|batch|iteration|iter|update|global batch|optimizer step)|"
        r"(?:global |total |effective )?batch(?: size)?(?: in)? tokens|global batch tokens|total desired batch size",
    ),
    "num_gpus": (
        r"(?:ddp )?world(?: ?size)?|(?:num(?:ber)?(?: of)?|n|total|total num(?:ber)?(?: of)?) ?gpus?|gpu count|"
        r"(?:num(?:ber)?(?: of)?|total|global|jax) (?:processes|devices|ranks|accelerators|chips)|"
        r"global device count|n ?procs?|"
        r"slots per trial",  # of Determined
        r"gpus|ngpus?|n devices|world|ranks|accelerators|device count",
    ),
    "gpus_per_node": (
        r"(?:num |n )?(?:gpus|devices|processes|procs) per (?:node|machine|host)|nproc per node|local world size|"
        r"sm num gpus|"  # of SageMaker's training toolkit
        r"n ?gpus per node",
    ),
    "num_nodes": (
        r"(?:num(?:ber)?(?: of)?|n|total) ?(?:nodes|machines|hosts)|nnodes|node count|num machines",
        r"nodes|hosts|machines",
    ),
    "num_layers": (
        r"(?:num(?:ber)?(?: of)?|n) ?(?:hidden |transformer |decoder |encoder )?layers?|nlayers?|decoder layers|"
        r"(?:num|n) (?:transformer )?blocks",
        r"layers|depth",
    ),
    "hidden_size": (
        r"(?:model )?hidden (?:size|dim)|n embd?|n embed|d model|dmodel|(?:model|embed(?:ding)?|emb) (?:dim|size)|"
        r"embd dim|decoder embed dim|emsize|residual dim",
        r"dim|width|hidden|d embed",
    ),
    "num_heads": (
        r"(?:num(?:ber)?(?: of)?|n) ?(?:attention |attn |query |q )?heads?|nheads?|decoder attention heads|"
        r"attention heads",
        r"heads",
    ),
    "num_kv_heads": (r"(?:num|n) ?(?:key value|kv) heads?|(?:num|n) query groups|kv heads",),
    "ffn_hidden_size": (
        r"(?:ffn|mlp|feed ?forward|ff) (?:hidden )?(?:size|dim)|intermediate (?:size|dim)|d ff|n inner|"
        r"ffn embed dim|dim feedforward",
        r"d? ?ffn|d mlp|feed ?forward",
    ),
    "vocab_size": (r"vocab(?:ulary)? ?size|n vocab|num embeddings|vocabsize", r"padded vocab size|vocab"),
    "num_experts": (r"(?:num|n) ?(?:local |routed |moe )?experts|moe num experts|number of experts", r"experts"),
    "experts_per_token": (r"(?:num )?experts per tok(?:en)?|moe (?:router )?top ?k|n activated experts",),
    "precision": (
        r"(?:mixed |train(?:ing)? )?precision|(?:compute |train(?:ing)? |amp |autocast |"
        r"mixed precision )?d ?type|ptdtype",
        r"(?:param(?:eter)?s?|model|torch) d ?type",
    ),
    "zero_stage": (r"(?:deepspeed )?zero(?: optimization)? stage|zero", r"ds stage|sharding stage"),
    "recompute": (
        r"(?:use )?(?:activation|gradient|grad) ?(?:re)?checkpoint(?:ing|s)?(?: mode)?|recompute(?: granularity)?|"
        r"act(?:ivation)? recompute(?:ation)?|checkpoint activations|"
        r"(?:activation )?remat(?:erialization)?(?: (?:mode|policy))?|"
        r"(?:activation|grad(?:ient)?|act) ckpt(?: mode)?",
        r"ac(?: mode)?",
    ),
    "steps_planned": (
        r"(?:max|total|num(?:ber)?(?: of)?|n)(?: num)?(?: (?:train(?:ing)?|optim(?:ization|izer)|update|gradient))? ?"
        r"(?:steps?|iters?|iterations|updates?)|train (?:iters|iterations)|train(?:ing)? steps|steps total|"
        r"(?:total )?steps planned|planned steps|"
        r"optim(?:ization|izer)? steps",
        r"steps|iterations|iters|n ?iters?",
    ),
    "params": (
        r"(?:total |trainable |num(?:ber)?(?: of)?|n|model|total num(?:ber)?(?: of)? |all )? ?(?:trainable )?"
        r"(?:model )?param(?:eter)?s?(?: count)?|model size|param count|parameters total",
    ),
    "active_params": (r"(?:num |n |total )?activ(?:e|ated) (?:model )?param(?:eter)?s?(?: count)?",),
    "model": (r"model name(?: or path)?|base model|pretrained model name or path|model id", r"model|arch(?:itecture)?"),
    "torch_version": (r"(?:py)?torch version|(?:py)?torch",),
    "cuda_version": (r"cuda version",),
    "accelerator": (r"gpu (?:name|type|model)|device name|accelerator(?: type)?|gpu 0|cuda device name", r"gpu"),
}
"""Columns of `runs` to the names of settings."""

_STAGES_OF_STRATEGIES = {
    **{f"{zero}{mark}{stage}": stage for zero in ("zero", "stage") for mark in ("", "-", "_") for stage in "0123"},
    **{f"deepspeed_stage_{stage}": stage for stage in "123"},
    **dict.fromkeys(("full_shard", "hybrid_shard", "fsdp", "fsdp2", "hsdp"), "3"),
    "shard_grad_op": "2",
    **dict.fromkeys(("no_shard", "ddp"), "0"),
}
"""Stages of ZeRO to the words for them. Only in words: a number behind `sharding` may be a degree."""
_STRATEGY_NAMES = (
    "sharding",
    "sharding mode",
    "sharding type",
    "sharding strategy",
    "fsdp sharding strategy",
    "strategy",
    "dist strategy",
    "distributed strategy",
    "parallel strategy",
    "dp mode",
    "dp type",
)

FLAGS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "bf16": ("precision", {"true": "bf16", "1": "bf16"}),
    "fp16": ("precision", {"true": "fp16", "1": "fp16"}),
    "fp8": ("precision", {"true": "fp8", "1": "fp8"}),
    "use bf16": ("precision", {"true": "bf16"}),
    "use fp16": ("precision", {"true": "fp16"}),
    # Of Megatron-LM: each data-parallel rank updates its part of the optimizer, which is the first stage of ZeRO.
    **dict.fromkeys(("use distributed optimizer", "distributed optimizer"), ("zero_stage", {"true": "1"})),
    "amp": ("precision", {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16"}),
    **dict.fromkeys(_STRATEGY_NAMES, ("zero_stage", _STAGES_OF_STRATEGIES)),
    **dict.fromkeys(("fsdp", "use fsdp", "enable fsdp"), ("zero_stage", {"true": "3", "full_shard": "3"})),
    # Of FSDP2's fully_shard: whether a layer's parameters are freed after its forward pass.
    **dict.fromkeys(
        ("reshard after forward", "fsdp reshard after forward"), ("zero_stage", {"true": "3", "false": "2"})
    ),
}
"""Switches: column of `runs` and what each printed value, in small letters, means for it."""

SETTING_WORDS = ascii_bounded(
    r"(?i)batch|bs\b|acc|gas\b|seq|ctx|context|block|len|layer|depth|embd|embed|hidden|dim|width|model|head|ffn|mlp|inner|"
    r"vocab|expert|gpu|rank|world|proc|device|node|parallel|\b[tpdce]p\b|_[tp]p|stage|zero|shard|replica|step|iter|update|param|"
    r"dtype|precision|bf16|fp16|fp8|checkpoint|recompute|torch|cuda|arch|token|epochs|mesh|tensor|pipe|host|"
    r"epoch\W{1,3}[0-9]+ ?(?:/|of)|"
    r"hardware|accelerator|\d ?[x×] ?(?:\d{1,2} ?[x×]? ?)?(?:nvidia|amd|instinct|[abhlv]\d{2}|mi\d{3}|gb\d{3})|"
    r"模型|长度|大小|步数|梯度累积|层数|维度|头数|参数量|并行|[张块卡台]|芯片|节点"
)
"""Found in any line that states a setting under one of its names."""

_LOSSES = "loss|nll|xent|entropy|objective|cost"
LOSS_VALUES = rf"(?i)(?:{_LOSSES})[^0-9]{{0,20}}[0-9]"
"""Found in any line that prints a loss under one of its usual names."""

STEP_VALUES = (
    rf"(?i)(?:{_LOSSES}|"
    r"tok(?:en)?s?.{0,3}(?:per|/).?s|throughput|(?:^|[^a-z])(?:tps|tgs|wps)|"
    r"(?:step|iter[a-z]*|batch).?time|time.per|s.per.(?:it|step))[^0-9]{0,20}[0-9]|"
    r"[0-9][^0-9]{0,2}(?:tok[a-z]*|it|steps?|iters?)/s|[0-9] ?(?:ms|s|sec|seconds)(?:/|.per.)(?:it|step)|"
    r"(?:^|[ \t|│:>\]])[0-9]+(?:[ \t]*[|│,;\t ][ \t]*[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?){2,}[ \t|│]*$"
)
"""Found in any line that prints a loss, a rate of tokens or a step's time under one of its usual names, and in rows of
three numbers and more, which a header above them names."""

PLANNED_EPOCHS = r"(?:(?:max|num(?:ber)?(?: of)?|n|total)(?: num)? ?)?(?:train(?:ing)? )?epochs"
"""How many epochs there are to be, which are the planned steps where a log counts its steps in epochs."""

AMBIGUOUS_BATCH = r"(?:train(?:ing)? )?(?:batch ?size|bsz?|batchsize)|batch|batch ?size train(?:ing)?"
"""A batch of which the name does not tell whether it is one process's or the whole job's."""

STEPS: Mapping[str, tuple[str, ...]] = {
    "step": (
        r"(?:global|train(?:ing)?|trainer|optim(?:izer)?|update|current|curr|total)? ?(?:steps?|iters?|"
        r"iterations?|updates?)"
        r"(?: (?:no|num(?:ber)?|idx|id|count))?|(?:num|n) updates|it|trainer global step|completed step|iter num|"
        r"(?:step|iter|iteration) i",
        r"(?:current |cur )?(?:mini ?)?batch(?:es)?(?: (?:no|num(?:ber)?|idx|id|i))?|batches done|i|idx|s|st",
    ),
    "epoch": (r"(?:train(?:ing)? |current |cur )?(?:epochs?|ep)(?: (?:no|num(?:ber)?|idx|id))?", r"e"),
    "loss": (
        r"loss|train(?:ing)? loss|loss train(?:ing)?|lm loss|train lm loss|reduced train loss|l train|tr loss|loss lm",
        r"(?:ce|nll|lm|xent|nlp|cross entropy|mlm|total|language model(?:ing)?|sum|loss)(?: loss)?|"
        r"(?:train )?(?:ce|nll|xent|"
        r"total|all|overall|combined|lm|cross entropy) loss|cross entropy|"
        r"l pix|(?:pix(?:el)?|l1) loss|"  # the second: BasicSR and what is made after it
        r"loss (?:total|ce|lm|nll|value|sum|all|scaled|(?:per )?tok(?:en)?)|train total loss|"
        r"(?:train )?loss(?: train)? total|(?:train )?tot loss",
        r"(?:avg|average|mean|running|smooth(?:ed)?|ema|batch|step|current|cur|mini ?batch|iter|last|raw|"
        r"global|moving avg)"
        r" (?:train(?:ing)? )?loss|loss (?:train(?:ing)? )?(?:avg|ema|mean|smooth(?:ed)?|step|batch|running|curr?)|"
        r"train(?:ing)? (?:avg|average|mean) loss",
        r"(?:the )?(?:train )?objective|cost|train(?:ing)?|(?:train(?:ing)? )?(?:mse|mae|bce)",
        r"l|err(?:or)?",
    ),
    "learning_rate": (
        r"(?:current |cur |train(?:ing)? )?(?:lr|learning ?rate|lrate)(?: (?:\d|group ?\d|s|adam\w*|group\d))?|eta lr",
    ),
    "grad_norm": (
        r"(?:global |total |train )?(?:grad(?:ient)?s?) ?(?:l2 )?norm(?:s| total| l2| global)?|g ?norm|total norm|"
        r"global norm|norm grad|grad norm before clip|l2 norm grad global",
        r"norm|grad|gn|gradient|grads",
    ),
    "step_time": (
        r"(?:(?:train|per|each|avg) )?(?:step|iter|iteration|batch|it) ?"
        r"(?:time|duration|timing|dt|latency|took|cost)(?: avg)?|dt|"
        r"train step timing|(?:time )?metrics end to end|"  # the second: torchtitan
        r"(?:elapsed )?time (?:per|a) (?:step|iter(?:ation)?|batch|it|global step)|(?:sec(?:ond)?s?|ms|s) (?:per )?"
        r"(?:step|it|iter|iteration|batch)|delta t|time it|time iter|time step|time batch|step avg|ms step|t step",
        r"time|took|duration|t|elapsed time|seconds|secs|ms|speed|train time|times? costs?|costs? times?|time used|"
        r"used time",
    ),
    "tokens_per_s": (
        r"(?:train )?(?:tok(?:en)?s?|toks) (?:per |p )?s(?:ec(?:ond)?s?)?|tps|(?:token )?throughput(?: tok(?:en)?s?)?"
        r"(?: (?:per )?s(?:ec(?:ond)?)?)?|tok(?:en)?s throughput|wps|throughput tokens per sec(?:ond)?|tok sec|"
        r"thru?put",
    ),
    "tokens_per_s_per_gpu": (
        rf"tgs|(?:tok(?:en)?s?|toks) (?:per )?(?:s(?:ec(?:ond)?)?) (?:per )?{DEVICE}|"
        rf"tokens per {DEVICE} per sec(?:ond)?|"
        rf"(?:tok(?:en)?s?) (?:per )?{DEVICE} (?:per )?s(?:ec(?:ond)?)?|tps (?:per )?{DEVICE}|"
        rf"throughput (?:per )?{DEVICE}|throughput device tokens per sec|tokens s gpu|tok s gpu",
    ),
    "mfu": (r"mfu|model flops? util(?:i[sz]ation)?|train mfu|mfu pct|mfu %",),
    "tflops_per_gpu": (
        rf"(?:model |achieved )?t ?flops?(?: (?:per )?s(?:ec(?:ond)?)?)?(?: (?:per )?{DEVICE})?|"
        r"throughput per gpu tflop s gpu|flops",
    ),
    "mem_reserved": (
        r"(?:max |peak |gpu |cuda )*(?:mem(?:ory)?) ?(?:reserved|cached)|(?:max |peak )?reserved(?: mem(?:ory)?)?",
    ),
    "mem_allocated": (
        r"(?:max |peak |gpu |cuda )*(?:mem(?:ory)?) ?alloc(?:ated)?|(?:max |peak )?alloc(?:ated)?(?: mem(?:ory)?)?",
        r"(?:max |peak |gpu |cuda |vram |device )*(?:mem(?:ory)?|vram|hbm)(?: (?:usage|used|gpu|max|peak|cuda))*",
    ),
    "consumed_tokens": (
        r"(?:total |num |n |consumed |seen |train(?:ed)? |processed |global )?tok(?:en)?s?(?: (?:seen|"
        r"processed|consumed|so far|"
        r"trained|total|done))?|total tokens seen|num input tokens seen",
    ),
    "ts": (r"t|ts|time ?stamp|(?:unix|wall|epoch|log) ?time(?: ?stamp)?|time|created(?: at)?|date ?time",),
    "rank": (r"(?:global )?rank|gpu(?: id)?|worker|local rank|proc(?:ess)?(?: id)?|device(?: id)?|ddp rank|r",),
}
"""Columns of `steps` (without the endings of their units) to the names of values."""

EVALUATION = re.compile(
    r"(?<![a-z])(?:e?val(?:id(?:ation)?|uat(?:e|ed|ion|ing)|s)?|dev|test(?:ing|set)?|holdout)(?![a-z])"
)
"""Words, in small letters, that mark a value as an evaluation's."""

TRAINING = re.compile(r"(?<![a-z])tr(?:ain(?:ing|er|_inner)?|n)(?![a-z])")
"""Words, in small letters, that mark a value as the training's."""


NAMESPACE = re.compile(
    r"perf(?:ormance)?|timings?|timers?|speed|throughput|system|sys|stats?|metrics?|progress|log|optim"
)
"""Groups of values whose name stands in front of theirs: `perf/step_time_s`."""

NOT_OURS = re.compile(
    r"\b(?:vision|image|audio|encoder|teacher|draft|critic|reward|ref|reference|student|lora|tokenizer|"
    r"optim(?:izer)?|eval|val|valid|"
    r"test|task specific|min|old|prev|previous|warm ?up|decay|save|log(?:ging)?|ckpt|checkpoint|inference|generation)\b"
)
"""Sections of others than the training's model."""


@lru_cache(maxsize=16_384)
def words(name: str) -> str:
    """The words of a printed name, in small letters, one blank between two.

    >>> words("tensorModelParallelSize"), words("--n-embd"), words("Tokens/sec/GPU"), words("train/loss")
    ('tensor model parallel size', 'n embd', 'tokens per sec gpu', 'train loss')
    >>> words("训练损失"), words("当前Batch")
    ('train loss', 'current batch')
    >>> words("tput(tok/s/dev)"), words("loss/dev")
    ('tput tok per s device', 'loss dev')
    >>> words("numGPUsPerNode"), words("Number of GPUs"), words("GPUName")
    ('num gpus per node', 'number of gpus', 'gpu name')
    """
    if not name.isascii():
        name = _CHINESE_WORD.sub(lambda hit: f" {_CHINESE[hit[0]]} ", name)
    name = _PER_SECOND.sub(" per ", _PER_DEVICE.sub("/device", name))
    return _OTHER.sub(" ", _HUMP.sub(" ", name)).strip().lower()


@lru_cache(maxsize=16_384)
def setting_of(name: str) -> tuple[str, int] | None:
    """The column of `runs` that words name, and how sure that is, from 0 for the surest on; None for no column.

    >>> setting_of("tensor model parallel size"), setting_of("depth"), setting_of("seed")
    (('tp', 0), ('num_layers', 1), None)
    """
    return _found(name, _settings())


@lru_cache(maxsize=16_384)
def step_columns(name: str) -> tuple[tuple[str, int], ...]:
    """The columns of `steps` that words may name, and how sure each is, from 0 for the surest on.

    >>> step_columns("lm loss"), step_columns("grad norm")
    ((('loss', 0),), (('grad_norm', 0),))
    """
    surest = {
        column: next((at for at, form in enumerate(forms) if form.fullmatch(name)), None)
        for column, forms in _steps().items()
    }
    return tuple((column, sure) for column, sure in surest.items() if sure is not None)


def _found(name: str, table: Mapping[str, tuple[re.Pattern[str], ...]]) -> tuple[str, int] | None:
    hits = [
        (sure, column) for column, forms in table.items() for sure, form in enumerate(forms) if form.fullmatch(name)
    ]
    return (min(hits)[1], min(hits)[0]) if hits else None


def _compiled(table: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[re.Pattern[str], ...]]:
    return {column: tuple(re.compile(form) for form in forms) for column, forms in table.items()}


# Compiled when the first name is looked up: most logs are of a known trainer, whose names need not be guessed.
@cache
def _settings() -> dict[str, tuple[re.Pattern[str], ...]]:
    return _compiled(SETTINGS)


@cache
def _steps() -> dict[str, tuple[re.Pattern[str], ...]]:
    return _compiled(STEPS)
