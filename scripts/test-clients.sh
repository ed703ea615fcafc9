#!/bin/sh
# Programs that call Helm, run with the real Helm and with deployer under its name, on
# a cluster of their own: what they write has to be the same. Each is built from a
# module of its own in internal/clients. Needs bin/deployer, bin/devcluster and bin/helm3.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
if [ "${1:-}" != run ]; then
	for client in helm-diff:github.com/databus23/helm-diff/v3 kustomize:sigs.k8s.io/kustomize/kustomize/v5 \
		helmfile:github.com/helmfile/helmfile chart-testing:github.com/helm/chart-testing/v3/ct; do
		(cd "internal/clients/${client%%:*}" && CGO_ENABLED=0 GOWORK=off go build -trimpath -ldflags '-s -w' -o "$root/bin/clients/${client%%:*}" "${client#*:}")
	done
	exec bin/devcluster run -- sh scripts/test-clients.sh run
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/theirs" "$work/ours" "$work/plugins/helm-diff/bin"
ln -s "$root/bin/helm3/helm" "$work/theirs/helm"
ln -s "$root/bin/deployer" "$work/ours/helm"
cp "$(cd internal/clients/helm-diff && go list -m -f '{{.Dir}}' github.com/databus23/helm-diff/v3)/plugin.yaml" "$work/plugins/helm-diff/plugin.yaml"
cp bin/clients/helm-diff "$work/plugins/helm-diff/bin/diff"
export HELM_PLUGINS="$work/plugins"
cd "$work"
failed=0

# both COMMAND...: HELM in it is one program, then the other.
both() {
	for side in theirs ours; do
		code=0
		command=$(printf '%s' "$*" | sed "s|HELM|$work/$side/helm|g")
		sh -c "$command" >"$side.out" 2>"$side.err" || code=$?
		echo "exit code $code" >>"$side.out"
	done
	if cmp -s theirs.out ours.out; then
		echo "same    $*"
	else
		failed=1
		echo "DIFFERS $*"
		diff theirs.out ours.out || true
		cat ours.err
	fi
}

theirs/helm create chart >/dev/null
ours/helm upgrade --install web chart -n default >/dev/null
both HELM plugin list
for values in replicaCount=3 image.tag=2 service.type=NodePort; do
	both "HELM diff upgrade web chart -n default --set $values"
	both "HELM diff upgrade web chart -n default --set $values --three-way-merge --detailed-exitcode --no-color"
done
both HELM diff upgrade new chart -n default --allow-unreleased
both HELM diff upgrade new chart -n default
ours/helm upgrade web chart -n default --set replicaCount=2 >/dev/null
both HELM diff revision web 1 2 -n default
both HELM diff rollback web 1 -n default

mkdir -p kustomized/charts
cp -r chart kustomized/charts/chart
cat >kustomized/kustomization.yaml <<'X'
helmCharts:
- {name: chart, releaseName: web, namespace: shop, includeCRDs: true, valuesInline: {replicaCount: 2}}
namePrefix: my-
X
both "$root/bin/clients/kustomize build --enable-helm --helm-command HELM kustomized"

# helmfile: environments, labels and needs. Each program has a namespace of its own, named
# as its directory.
cat >helmfile.yaml.gotmpl <<'X'
environments:
  test: {values: [{replicas: 2}]}
  production: {values: [{replicas: 3}]}
---
helmDefaults: {createNamespace: true, wait: false}
releases:
- name: db
  namespace: {{ requiredEnv "SIDE" }}
  chart: ./chart
  labels: {tier: back}
- name: app
  namespace: {{ requiredEnv "SIDE" }}
  chart: ./chart
  labels: {tier: front}
  needs: [{{ requiredEnv "SIDE" }}/db]
  values: [{replicaCount: {{ .Values.replicas }}}]
X
# helmfile ARGUMENT...: what it writes to standard output, and what the releases are then.
helmfile() {
	both "SIDE=\$(basename \$(dirname HELM)) $root/bin/clients/helmfile --helm-binary HELM --file helmfile.yaml.gotmpl $* >out; code=\$?; sed 's/theirs/SIDE/g;s/ours/SIDE/g;/^LAST DEPLOYED/d' out | sort; exit \$code"
	both "HELM list --all -n \$(basename \$(dirname HELM)) -o json | jq -c '.[]|[.name,.revision,.status,.chart]'"
}
helmfile --environment test diff
helmfile --environment test --selector tier=back sync
helmfile --environment test apply --suppress-diff
helmfile --environment test diff
helmfile --environment production diff --detailed-exitcode
helmfile --environment production apply
helmfile --environment production apply
helmfile --environment production status
helmfile --environment production --selector tier=front destroy
helmfile --environment production sync
helmfile --environment production destroy
helmfile --environment nowhere diff

# chart-testing: it calls the helm in PATH. Names of namespaces and releases are drawn.
cat >ct.yaml <<'X'
remote: origin
target-branch: main
chart-dirs: [repository]
validate-maintainers: false
check-version-increment: false
validate-yaml: false
validate-chart-schema: false
X
mkdir -p repository
cp -r chart repository/chart
git init -q -b main .
git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m empty
# ct ARGUMENT...: what it tells of each chart, without names that are drawn and without
# exit codes: ours say more than 1. What it passes on of Helm's two streams comes in any order.
ct() {
	both "PATH=\$(dirname HELM):\$PATH $root/bin/clients/chart-testing $* --config ct.yaml >out 2>&1; code=\$?; sed -E 's/(theirs|ours)/SIDE/g;s/exit status [0-9]+/exit status N/' out | grep -E '^(Linting|Installing|Testing|Upgrading|All charts| (✔|✖))'; exit \$code"
}
ct lint --charts repository/chart
ct install --charts repository/chart --helm-extra-args --timeout=60s
ct install --charts repository/chart --upgrade --helm-extra-args --timeout=60s
sed -i 's/^kind: Deployment/kind: Deploymint/' repository/chart/templates/deployment.yaml
ct install --charts repository/chart --helm-extra-args --timeout=60s
printf 'broken: {{ nope }}\n' >repository/chart/templates/broken.yaml
ct lint --charts repository/chart

# Ansible, twice: the second run changes nothing. From Debian's packages ansible and
# python3-kubernetes.
if command -v ansible-playbook >/dev/null; then
	cat >play.yaml <<'X'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - kubernetes.core.helm: {binary_path: "{{ helm }}", name: played, chart_ref: "{{ chart }}", release_namespace: "{{ space }}", create_namespace: true, values: {replicaCount: 2}}
    - kubernetes.core.helm_info: {binary_path: "{{ helm }}", name: played, release_namespace: "{{ space }}"}
X
	for run in first second; do
		both "ansible-playbook -i localhost, -e space=\$(basename \$(dirname HELM)) -e helm=HELM -e chart=$work/chart -e ansible_python_interpreter=/usr/bin/python3 play.yaml 2>/dev/null # $run"
	done
	grep -q 'changed=0' ours.out || failed=1
else
	echo "Ansible isn't installed: its playbook is left out" >&2
fi

# Nelm: a release goes from one program to the other and back, after failures too, and has what the values say each time.
if command -v nelm >/dev/null; then
	mkdir -p moved/templates
	echo '{apiVersion: v2, name: moved, version: 1.0.0}' >moved/Chart.yaml
	cat >moved/templates/all.yaml <<'X'
{{- range $name, $data := .Values.maps }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $name }}}
data: {{ toJson $data }}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded,hook-failed"}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {sim.deployer/steps: '[{"phase":"{{ .Values.hook }}","state":{"terminated":{"exitCode":1}}}]'}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/hook:1"}]}
X
	# moved PROGRAM HOOK MAPS: the release has these ConfigMaps, and only them, whether its hook fails or succeeds.
	moved() {
		echo "{maps: $3, hook: $2}" >moved/values.yaml
		case $1 in
		nelm) nelm release install -n moved -r web --timeout 2m moved ;;
		deployer) ours/helm upgrade web moved -n moved ;;
		esac >out 2>&1 && code=Succeeded || code=Failed
		live=$("$root/bin/devcluster" kubectl get configmaps -n moved -o json |
			jq -cS '[.items[] | select(.metadata.annotations["meta.helm.sh/release-name"] == "web") | {(.metadata.name): .data}] | add')
		if [ "$live $code" = "$3 $2" ]; then
			echo "right   $*"
		else
			failed=1
			echo "WRONG   $*: $code, and there is $live"
			cat out
		fi
	}
	moved nelm Succeeded '{"a":{"x":"1","y":"1"},"b":{"z":"1"}}'
	moved deployer Succeeded '{"a":{"x":"2","z":"2"},"c":{"z":"2"}}'
	moved nelm Succeeded '{"a":{"x":"3"}}'
	moved nelm Failed '{"a":{"x":"4","y":"4"},"b":{"z":"4"}}'
	moved deployer Succeeded '{"a":{"x":"5"}}'
	moved deployer Failed '{"a":{"x":"6","y":"6"}}'
	moved nelm Succeeded '{"a":{"x":"7"}}'
	nelm release history web -n moved -o json >theirs.out
	ours/helm history web -n moved -o json | jq 'map(del(.updated))' >ours.out
	jq 'map(del(.updated))' theirs.out | diff - ours.out || failed=1
	ours/helm uninstall web -n moved >/dev/null && moved nelm Succeeded '{"a":{"x":"8"}}' && nelm release uninstall -n moved -r web >/dev/null
	ours/helm list --all -n moved -q | grep . && failed=1
else
	echo "Nelm isn't installed: the release that it shares is left out" >&2
fi
exit $failed
