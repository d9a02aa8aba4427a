{{- define "provider.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "provider.selector" -}}
app.kubernetes.io/name: verda-cloud-provider
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "provider.labels" -}}
{{ include "provider.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "provider.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The operator's configuration on top of what this chart mounts where. */}}
{{- define "provider.config" -}}
{{- $ours := dict
  "listen" "0.0.0.0:8086"
  "tls" (dict "cert" "/tls/tls.crt" "key" "/tls/tls.key" "client_ca" "/tls/ca.crt")
  "http" (dict "listen" "0.0.0.0:8087")
  "database" "/data/provider.db" -}}
{{- if not .Values.simulator.enabled -}}
{{- $_ := set $ours "verda" (dict "client_secret_file" "/credentials/client_secret") -}}
{{- end -}}
{{- if .Values.kubernetes.enabled -}}
{{- $_ := set $ours "kubernetes" (dict "enabled" true) -}}
{{- end -}}
{{- mergeOverwrite $ours (deepCopy .Values.config) | toYaml -}}
{{- end -}}
