{{- define "parts.configmap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Name }}
data: {{- toYaml .Values.data | nindent 2 }}
{{- end -}}
