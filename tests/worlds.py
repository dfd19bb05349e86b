"""Small worlds with round numbers, so that tests can be computed by hand."""

from __future__ import annotations

from hwmodels.job import TrainingJob
from hwmodels.machine import Cluster, Device, Fabric, Node, Pool
from hwmodels.model import ModelSpec
from hwmodels.stack import Stack

ROUND_DEVICE = Device(
    name="round",
    memory=80e9,
    memory_bandwidth=2e12,
    peak_bf16=200e12,
    peak_fp16=200e12,
    matmul_efficiency=0.5,
    memory_efficiency=0.5,
    processors=100,
    power=500.0,
)
"""100 TFLOP/s of matmul, 1 TB/s of streaming, 100 processors."""

ROUND_STACK = Stack(
    name="round",
    attention="fused",
    dropout=False,
    attention_efficiency=0.5,
    matmul_efficiency=1.0,
    elementwise_passes=10,
    tp_overlap=0.0,
    dp_overlap=0.5,
    pp_overlap=True,
    scatter_gather=False,
    context_parallel=True,
    zero_with_pipeline=3,
    gradient_bytes=4,
    host_overhead=0.0,
    memory_reserve=1e9,
)

GPT3 = ModelSpec(
    name="gpt3-175b",
    layers=96,
    hidden=12288,
    ffn_hidden=49152,
    heads=96,
    kv_heads=96,
    head_dim=128,
    vocab=51200,
    gated_mlp=False,
    activation="gelu",
    norm="layernorm",
    qkv_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    tied_embeddings=True,
    learned_positions=2048,
)

LLAMA3_70B = ModelSpec(
    name="llama3-70b",
    layers=80,
    hidden=8192,
    ffn_hidden=28672,
    heads=64,
    kv_heads=8,
    head_dim=128,
    vocab=128256,
)

SMALL = ModelSpec(name="small", layers=8, hidden=1024, ffn_hidden=4096, heads=8, kv_heads=4, head_dim=128, vocab=8192)


def round_node(devices: int = 8) -> Node:
    """A node of round devices: 200 GB/s inside at full efficiency, one 25 GB/s card per device."""
    return Node(
        name="round-node",
        device=ROUND_DEVICE,
        devices=devices,
        domain=devices,
        scaleup="round link",
        scaleup_bandwidth=200e9,
        scaleup_latency=1e-6,
        scaleup_efficiency=1.0,
        nics=devices,
        nic_bandwidth=25e9,
        power=6000.0,
        default_fabric="round-fabric",
    )


def round_cluster(nodes: int = 2, devices: int = 8, link_bandwidth: float = 25e9) -> Cluster:
    """`nodes` round nodes on a fabric without loss and with 10 us of latency."""
    fabric = Fabric(
        name="round-fabric",
        kind="infiniband",
        link_bandwidth=link_bandwidth,
        latency=10e-6,
        efficiency=1.0,
        radix=40,
    )
    return Cluster(name="round", pools=(Pool(node=round_node(devices), count=nodes),), fabric=fabric)


def round_job(model: ModelSpec = SMALL, global_batch_size: int = 64, sequence_length: int = 1024) -> TrainingJob:
    """A bf16 job on the round stack."""
    return TrainingJob(
        model=model, global_batch_size=global_batch_size, sequence_length=sequence_length, tokens=1e9, stack=ROUND_STACK
    )
