package apply_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// lot draws charts.
type lot struct{ *rand.Rand }

func (l *lot) of(words ...string) string { return words[l.IntN(len(words))] }

// some draws a few of the words, in order.
func (l *lot) some(words ...string) string {
	var out []string
	for _, w := range words {
		if l.IntN(2) == 0 {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

func (l *lot) chart() string {
	var b strings.Builder
	doc := func(apiVersion, kind, name, rest string) {
		if l.IntN(4) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {%s}, annotations: {%s}}\n%s\n", apiVersion, kind, name,
			l.some("a: x", "b: "+l.of("w", "z")), l.some("note: '"+l.of("1", "2")+"'", "other: ''"), rest)
	}
	for i := range 3 {
		doc("v1", "ConfigMap", fmt.Sprintf("conf%d", i), "data: {"+l.some("a: "+l.of("x", "z"), "b: x", "c: x")+"}")
	}
	doc("v1", "Secret", "secret", "stringData: {"+l.some("a: "+l.of("x", "z"), "b: x")+"}\ndata: {"+l.some("c: eA==")+"}")
	doc("v1", "Service", "web", "spec: {selector: {"+l.some("app: web", "x: z")+"}, sessionAffinity: "+l.of("None", "ClientIP")+
		", ports: [{name: one, port: 80}"+l.of("", ", {name: two, port: 81, targetPort: http}", ", {name: two, port: 81}, {name: dns, port: 81, protocol: UDP}")+"]}")
	doc("rbac.authorization.k8s.io/v1", "Role", "role", "rules: ["+l.some("{apiGroups: [''], resources: [pods], verbs: ["+l.of("get", "list")+"]}", "{apiGroups: [apps], resources: [deployments], verbs: [get]}")+"]")
	doc("apps/v1", "Deployment", "web", "spec: {replicas: 0, selector: {matchLabels: {app: web}}"+
		l.of("", ", strategy: {type: Recreate}", ", strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}", ", minReadySeconds: 3, revisionHistoryLimit: 2")+
		", template: {metadata: {labels: {app: web"+l.of("", ", v: '1'", ", v: '2'")+"}}, spec: "+l.pod()+"}}")
	doc("batch/v1", "CronJob", "cron", "spec: {suspend: true, schedule: '"+l.of("1 * * * *", "2 * * * *")+"', jobTemplate: {spec: {template: {spec: "+
		strings.Replace(l.pod(), "{", "{restartPolicy: Never, ", 1)+"}}}}")
	if b.Len() == 0 {
		return config("only")
	}
	return b.String()
}

func (l *lot) pod() string {
	containers := []string{l.container("app")}
	for _, name := range []string{"side", "proxy"} {
		if l.IntN(2) == 0 {
			containers = append(containers, l.container(name))
		}
	}
	l.Shuffle(len(containers), func(i, j int) { containers[i], containers[j] = containers[j], containers[i] })
	return "{dnsPolicy: Default, " + strings.TrimPrefix(l.some("nodeSelector: {"+l.some("a: x", "b: x")+"}", "tolerations: [{key: "+l.of("a", "b")+"}]", "hostNetwork: false",
		"terminationGracePeriodSeconds: "+l.of("5", "30"), "securityContext: {"+l.some("runAsUser: 5", "fsGroup: 6")+"}",
		"volumes: [{name: v, "+l.of("emptyDir: {}", "configMap: {name: conf0}", "emptyDir: {medium: Memory}")+"}]")+
		l.of("", ", initContainers: ["+l.container("init")+"]")+", containers: ["+strings.Join(containers, ", ")+"]}", ", ")
}

func (l *lot) container(name string) string {
	env := l.of("env: []", "env: null", "env: [{name: A, value: "+l.of("x", "z")+"}, {name: B, value: x}]", "env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
		"env: [{name: A, value: x}, {name: B, value: x}, {name: A, value: z}]", "env: [{name: A, value: x}, {name: B, value: $(A)}, {name: A, value: z}]")
	ports := l.of("ports: []", "ports: [{name: http, containerPort: 8080}]", "ports: [{containerPort: 8080}, {containerPort: 8080, protocol: UDP}]",
		"ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 8080}]")
	more := l.some("imagePullPolicy: "+l.of("Always", "IfNotPresent"), "args: ["+l.some("a", "b")+"]", "resources: {limits: {"+l.some("cpu: '1'", "memory: 1Gi")+"}}",
		"livenessProbe: {"+l.of("httpGet: {port: 80}", "tcpSocket: {port: 80}, periodSeconds: 5")+"}")
	if name == "init" { // may not have probes
		more = ""
	} else if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("{name: %s, image: 'i:%s', %s, %s%s}", name, l.of("1", "2"), env, ports, more)
}
