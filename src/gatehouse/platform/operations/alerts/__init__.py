"""Alert rules: compare a metric of the last minutes with a threshold, and notify a receiver (docs/alerts.md).

    armed        evaluated; if its condition is met it triggers: history, notification, audit event
    in cooldown  for `cooldown_minutes` after it triggered: evaluated, without any effect
    disabled     not evaluated

    evaluation   evaluates conditions, both by schedule and on request of an administrator
    schedule     every ALERT_EVALUATION_INTERVAL_SECONDS, each rule on one machine at a time
    notifying    sends each notification once, without retries, signed where ALERT_WEBHOOK_SECRET is set

The metrics are those of `records/minutes`.
"""
