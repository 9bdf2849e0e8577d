"""Measurements that routing and charging use: latencies, answer lengths and token counts."""
