"""Alert rules: a figure of the last minutes is compared with a threshold, and somebody is told (reference 3, Alert
rule).

    armed        evaluated; where its condition is met it triggers: history, notification, audit event
    in cooldown  for `cooldown_minutes` after it triggered: evaluated, and nothing else
    disabled     left out

    evaluation   the condition, the same by schedule and when an administrator asks
    schedule     every ALERT_EVALUATION_INTERVAL_SECONDS, each rule on one machine at a time
    notifying    what was triggered is sent once, signed where ALERT_WEBHOOK_SECRET is set; never a second time

The figures are those of `records/minutes`.
"""
