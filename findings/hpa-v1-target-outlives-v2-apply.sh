#!/bin/sh
# Kubernetes 1.37.2. One field manager applies a HorizontalPodAutoscaler as autoscaling/v1 with a target of 70 % CPU, and then as autoscaling/v2
# without any metric. Server-side apply removes what a manager stated before and states no longer. The guess: the target is gone. It
# stays, and belongs to nobody from then on, so that no later apply that doesn't state metrics can remove it.
. "$(dirname "$0")/lib/apiserver.sh"
target='scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, minReplicas: 1, maxReplicas: 3'
echo "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {$target, targetCPUUtilizationPercentage: 70}}" | apply m
same 'targets owned at first' "$(owned hpa.v1.autoscaling h | grep -o f:targetCPUUtilizationPercentage)" f:targetCPUUtilizationPercentage
echo "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {$target}}" | apply m
same 'metrics after the second apply' "$(field hpa.v2.autoscaling h '[.spec.metrics[].resource]')" '[{"name":"cpu","target":{"averageUtilization":70,"type":"Utilization"}}]'
same 'owned after it' "$(owned hpa.v2.autoscaling h)" '{"m":{"f:spec":{"f:maxReplicas":{},"f:minReplicas":{},"f:scaleTargetRef":{"f:apiVersion":{},"f:kind":{},"f:name":{}}}}}'
