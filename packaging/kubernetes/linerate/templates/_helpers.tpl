{{- define "linerate.name" -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- end -}}

{{- define "linerate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "linerate.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/name: linerate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "linerate.selector" -}}
app.kubernetes.io/name: linerate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* Options --label of an agent, from a dict of root, pool and network. */ -}}
{{- define "linerate.agentLabels" -}}
{{- range $key, $value := .pool.labels }}
- --label
- {{ printf "%s=%s" $key $value | quote }}
{{- end }}
- --label
- network={{ .network }}
- --label
- node=$(NODE_NAME)
{{- if .root.Values.agents.zoneFromPod }}
- --label
- zone=$(ZONE)
{{- end }}
{{- end -}}

{{- define "linerate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "linerate.nodeEnvironment" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if .Values.agents.zoneFromPod }}
- name: ZONE
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
{{- end }}
{{- end -}}
