{{- define "everything.name" -}}
{{ .Release.Name }}-everything
{{- end -}}

{{- /* A pod template: list of root context and component */ -}}
{{- define "everything.template" -}}
metadata:
  labels:
    app: {{ include "everything.name" (index . 0) }}
    component: {{ index . 1 }}
spec:
  serviceAccountName: {{ include "everything.name" (index . 0) }}
  containers:
    - name: main
      image: {{ (index . 0).Values.image }}
{{- end -}}

{{- define "everything.selector" -}}
app: {{ include "everything.name" (index . 0) }}
component: {{ index . 1 }}
{{- end -}}
