{{/* The name of everything: the release's, with the chart's behind it unless that is in it. */}}
{{- define "nuthatch.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What a selector goes by. It may not change in an upgrade. */}}
{{- define "nuthatch.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nuthatch.labels" -}}
{{ include "nuthatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Megabytes of a pod: what the server promises to stay within (1.05 times -m and 32), and the kernel's buffers. With
scripts twice the memory of the scripts of each thread, and their texts. */}}
{{- define "nuthatch.megabytes" -}}
{{- $scripts := ternary (add (mul (int .Values.threads) 32) 8) 0 .Values.lua -}}
{{- add (div (add (mul (int .Values.memory) 11) 9) 10) 64 $scripts -}}
{{- end }}

{{- define "nuthatch.args" -}}
- -m
- {{ .Values.memory | int | quote }}
- -t
- {{ .Values.threads | int | quote }}
- -c
- {{ .Values.connections | int | quote }}
- --metrics
- "*:9150"
{{- if .Values.redis.enabled }}
- --redis-port
- "6379"
{{- end }}
{{- if .Values.lua }}
- --lua
{{- end }}
{{- if .Values.auth.secret }}
- -Y
- /etc/nuthatch/users/users
{{- end }}
{{- if .Values.tls.secret }}
- -Z
- -o
- ssl_chain_cert=/etc/nuthatch/tls/tls.crt,ssl_key=/etc/nuthatch/tls/tls.key
{{- end }}
{{- if .Values.persistence.enabled }}
- -e
- /data/items
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A pod of either kind. */}}
{{- define "nuthatch.pod" -}}
metadata:
  labels:
    {{- include "nuthatch.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "nuthatch.name" . }}
  automountServiceAccountToken: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ int .Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: nuthatch
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- include "nuthatch.args" . | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      ports:
        - name: memcached
          containerPort: 11211
        {{- if .Values.redis.enabled }}
        - name: redis
          containerPort: 6379
        {{- end }}
        - name: metrics
          containerPort: 9150
      # While a server reads its items it has no port: five minutes for that.
      startupProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 2
        failureThreshold: 150
      readinessProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 5
        timeoutSeconds: 2
      # A cache that is restarted loses its items, so it may be silent for a minute.
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 15
        timeoutSeconds: 5
        failureThreshold: 4
      resources:
        {{- if .Values.resources }}
        {{- toYaml .Values.resources | nindent 8 }}
        {{- else }}
        requests:
          cpu: 100m
          memory: {{ include "nuthatch.megabytes" . }}Mi
        limits:
          memory: {{ include "nuthatch.megabytes" . }}Mi
        {{- end }}
      volumeMounts:
        - name: data
          mountPath: /data
        {{- if .Values.auth.secret }}
        - name: users
          mountPath: /etc/nuthatch/users
          readOnly: true
        {{- end }}
        {{- if .Values.tls.secret }}
        - name: tls
          mountPath: /etc/nuthatch/tls
          readOnly: true
        {{- end }}
  volumes:
    {{- if not .Values.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if .Values.auth.secret }}
    - name: users
      secret:
        secretName: {{ .Values.auth.secret }}
        defaultMode: 0440
    {{- end }}
    {{- if .Values.tls.secret }}
    - name: tls
      secret:
        secretName: {{ .Values.tls.secret }}
        defaultMode: 0440
    {{- end }}
    {{- if and .Values.persistence.enabled (not (or .Values.auth.secret .Values.tls.secret)) }}
    []
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
