"""Measurements that choices rely on: latencies, answer lengths and token counts."""
