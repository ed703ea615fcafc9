{{- /* A hook Job: list of root context, event, name, weight, delete policy */ -}}
{{- define "hooks.job" -}}
{{- $root := index . 0 }}{{ $event := index . 1 }}{{ $name := index . 2 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $root.Release.Name }}-{{ $name }}
  annotations:
    helm.sh/hook: {{ $event }}
    helm.sh/hook-weight: {{ index . 3 | quote }}
    helm.sh/hook-delete-policy: {{ index . 4 }}
spec:
  backoffLimit: 0
  template:
    {{- with index $root.Values.podAnnotations $event }}
    metadata:
      annotations: {{- toYaml . | nindent 8 }}
    {{- end }}
    spec:
      restartPolicy: Never
      containers:
        - name: {{ $event }}
          image: {{ $root.Values.image }}
          command: [echo, {{ $name }}]
{{- end -}}
