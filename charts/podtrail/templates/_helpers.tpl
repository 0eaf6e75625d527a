{{- define "podtrail.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* What Helm wants behind app.kubernetes.io/name in a mapping in braces. */ -}}
{{- define "podtrail.labels" -}}
{{- if not .Values.plainManifests -}}
, app.kubernetes.io/instance: {{ .Release.Name }}, app.kubernetes.io/managed-by: {{ .Release.Service }}, helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}
{{- end -}}

{{- /* The configuration of a mode as text: as it stands in files/, or merged with what the values add. */ -}}
{{- define "podtrail.config" -}}
{{- $values := index .context.Values .mode -}}
{{- $text := .context.Files.Get (printf "files/%s.yaml" .mode) -}}
{{- if and (eq .mode "gateway") $values.persistence.enabled -}}
{{- $text = regexReplaceAll "(?m)^( *)# (- file_storage|durable: file_storage|file_storage: .*)$" $text "${1}${2}" -}}
{{- end -}}
{{- if $values.extraConfig -}}
{{- mergeOverwrite (fromYaml $text) (deepCopy $values.extraConfig) | toYaml -}}
{{- else -}}
{{- $text | trimSuffix "\n" -}}
{{- end -}}
{{- end -}}

{{- /* Which modes have an extraConfig, as words. */ -}}
{{- define "podtrail.extended" -}}
{{- range $mode := list "gateway" "agent" "stock" "scheduler" -}}
{{- $values := index $.Values $mode -}}
{{- if and $values.enabled $values.extraConfig }}{{ $mode }} {{ end -}}
{{- end -}}
{{- end -}}

{{- /* Where what is written on the nodes and beside schedulers goes; the name does not depend on the release. */ -}}
{{- define "podtrail.gateway" -}}
http://podtrail-gateway.{{ .Release.Namespace }}.svc.cluster.local:4317
{{- end -}}

{{- define "podtrail.token" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace "podtrail-gateway" -}}
{{- if .Values.token.value -}}
{{ .Values.token.value | b64enc }}
{{- else if and $there $there.data (index $there.data "token") -}}
{{ index $there.data "token" }}
{{- else -}}
{{ randAlphaNum 48 | b64enc }}
{{- end -}}
{{- end -}}

{{- /* Selector, tolerations and affinity of a mode, where there are some. */ -}}
{{- define "podtrail.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" -}}
{{- with index $.mode $key }}
{{ $key }}: {{ toJson . }}
{{- end -}}
{{- end -}}
{{- with $.context.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end -}}
{{- end -}}
