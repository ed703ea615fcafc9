#!/bin/sh
# Kubernetes 1.37.2. A CronJob that runs on leap days only gets another schedule, a daily one whose minute of today has begun. The guess: it runs tomorrow. So
# it is until something else of it changes: then the run that was "missed" before the schedule was known starts at once, by a mere
# label. Takes two minutes.
CONTROLLERS=cronjob-controller,job-controller
. "$(dirname "$0")/lib/apiserver.sh"
echo '{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {timeZone: Etc/UTC, schedule: "0 0 29 2 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}' | apply m
minute=$(($(date -u +%s) / 60 + 1)) # the first one after the CronJob was made
passed() { [ "$(date -u +%s)" -gt $((minute * 60 + 5)) ]; }
eventually passed
kubectl patch cronjob c --type merge -p "{\"spec\":{\"schedule\":\"$(date -u -d "@$((minute * 60))" '+%-M %-H') * * *\"}}" >/dev/null
sleep 10
same 'jobs after the change of the schedule' "$(kubectl get jobs -o json | jq '.items | length')" 0
kubectl label cronjob c some=label >/dev/null
started() { [ "$(kubectl get jobs -o json | jq '.items | length')" = 1 ]; }
eventually started
same 'jobs after a label' "$(kubectl get jobs -o json | jq '.items | length')" 1
same 'scheduled for the minute that had passed' "$(kubectl get jobs -o json | jq -r '.items[0].metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]')" "$(date -u -d "@$((minute * 60))" +%Y-%m-%dT%H:%M:%SZ)"
