"""Alert rules: compare a metric of the last minutes with a threshold, and notify a receiver (docs/alerts.md).

    armed        evaluated; if its condition is met, the rule triggers: history, notification, audit event
    in cooldown  for `cooldown_minutes` after the rule triggered: evaluated without any effect
    disabled     not evaluated

    evaluation   evaluates conditions, both by schedule and on request of an administrator
    schedule     runs every ALERT_EVALUATION_INTERVAL_SECONDS, for each rule on one machine at a time
    notifying    sends each notification once, without retries; signed if ALERT_WEBHOOK_SECRET is set

`records/minutes` defines the metrics.
"""
