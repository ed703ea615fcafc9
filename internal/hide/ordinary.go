package hide

import (
	"iter"
	"strings"
	"unicode"

	"deployer/internal/lazyregexp"
)

// meaningless texts are never hidden, even if their key is confidential.
var meaningless = setOf(strings.FieldsSeq(`true false yes no on off null nil none default disabled enabled localhost 127.0.0.1 0.0.0.0 ::1 production development (hidden)`))

// ordinary words occur in unrelated texts and in our own messages. Hiding them there would
// reveal a password that is the same word. They are hidden where they are a whole value, and
// if their key is confidential also as whole words in texts.
var ordinary = setOf(strings.FieldsSeq(`
	admin administrator root user users username guest test tests testing tester demo example sample secret secrets password passwd
	passphrase changeme change-me token login account owner operator service services server client system manager master main
	app apps application web website api backend frontend worker job jobs cron task proxy gateway router cache queue broker store
	storage data database databases table file files path host hosts port address public private internal external local remote
	postgres postgresql mysql mariadb sqlite mongo mongodb redis memcached rabbitmq kafka zookeeper elastic elasticsearch opensearch
	kibana grafana prometheus nginx apache httpd haproxy envoy traefik vault consul etcd minio keycloak jenkins gitlab github gitea
	harbor nexus sonarqube wordpress drupal nextcloud airflow spark flink cassandra influxdb clickhouse
	debug info warn warning error fatal trace panic notice critical level verbose silent
	prod staging stage live dev preview sandbox
	release releases releasing revision chart charts template templates values value manifest hook hooks namespace namespaces
	object objects kind kinds name names label labels annotation annotations field fields status state spec metadata
	deploy deployed deploying deployment deployments install installed upgrade upgraded rollback uninstall uninstalled superseded
	pending pending-install pending-upgrade pending-rollback failed failure failing succeeded success complete completed
	running waiting ready unready progressing unknown gone deleted deleting created updated recreated unchanged kept applied
	create update delete patch apply prune keep get list watch read write
	rejected stopped stuck timeout retry plan planned change changed changes conflict conflicts drift
	pod pods container containers image images node nodes cluster replica replicas volume volumes claim claims secretname
	configmap configmaps statefulset statefulsets daemonset daemonsets replicaset replicasets cronjob cronjobs ingress ingresses
	serviceaccount serviceaccounts role roles rolebinding clusterrole clusterrolebinding persistentvolume persistentvolumeclaim
	networkpolicy poddisruptionbudget horizontalpodautoscaler customresourcedefinition storageclass
	always never once exists equal opaque clusterip nodeport loadbalancer recreate rollingupdate
	string number integer boolean array latest stable edge json yaml text html http https grpc tcp
	utf8 utf-8 ascii basic bearer digest standalone replication require required optional disable enable allow deny
	first last next this that with from into have been not the and for
`))

func setOf(words iter.Seq[string]) map[string]bool {
	out := map[string]bool{}
	for w := range words {
		out[w] = true
	}
	return out
}

func isOrdinary(text string) bool {
	text = strings.ToLower(text)
	return ordinary[text] || meaningless[text]
}

// quantity matches a size, a duration or a version, as configuration has many of them.
var quantity = lazyregexp.New(`^[vV]?[0-9][0-9.]*([a-zA-Z%]{1,3})?$`)

func hasLetter(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }
