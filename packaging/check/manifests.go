package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var (
	// A reference to an environment variable in an argument.
	variable = regexp.MustCompile(`\$\(([A-Z_]+)\)`)
)

// The objects of one installation.
type manifests struct {
	problems []string
	// Labels of the pods that each workload makes.
	pods map[string]labels.Set
	// Names of the ports of each workload's pods.
	ports      map[string]map[string]bool
	services   map[string]*core.Service
	configs    map[string]bool
	selectors  map[string]*meta.LabelSelector
	references map[string]string
}

func (m *manifests) problem(format string, values ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, values...))
}

// checkManifests decodes every document strictly: unknown and duplicate fields are errors. It then checks what types
// cannot: references, selectors, and the security of containers.
func checkManifests(text []byte) ([]string, int) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return []string{err.Error()}, 0
		}
	}
	options := json.SerializerOptions{Yaml: true, Strict: true}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, options)
	m := &manifests{
		pods:       map[string]labels.Set{},
		ports:      map[string]map[string]bool{},
		services:   map[string]*core.Service{},
		configs:    map[string]bool{},
		selectors:  map[string]*meta.LabelSelector{},
		references: map[string]string{},
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	objects := 0
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			m.problem("%v", err)
			break
		}
		if len(bytes.TrimSpace(onlyYAML(document))) == 0 {
			continue
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			m.problem("%v: %v", kind, err)
			continue
		}
		objects++
		m.object(object)
	}
	m.checkSelectors()
	for name, user := range m.references {
		if !m.configs[name] {
			m.problem("%s: there is no ConfigMap %s", user, name)
		}
	}
	if objects == 0 {
		m.problem("no objects")
	}
	return m.problems, objects
}

// onlyYAML returns a document without its comments.
func onlyYAML(document []byte) []byte {
	return regexp.MustCompile(`(?m)^\s*#.*$|^---$`).ReplaceAll(document, nil)
}

func (m *manifests) object(object runtime.Object) {
	named, ok := object.(meta.Object)
	if !ok {
		m.problem("%T has no name", object)
		return
	}
	name := fmt.Sprintf("%T %s", object, named.GetName())
	for _, reason := range validation.IsDNS1123Label(named.GetName()) {
		m.problem("%s: %s", name, reason)
	}
	for key, value := range named.GetLabels() {
		m.label(name, key, value)
	}
	if named.GetNamespace() == "" {
		m.problem("%s has no namespace", name)
	}
	switch object := object.(type) {
	case *apps.DaemonSet:
		m.workload(name, object.Spec.Selector, &object.Spec.Template)
	case *apps.Deployment:
		m.workload(name, object.Spec.Selector, &object.Spec.Template)
	case *core.Service:
		m.services[name] = object
	case *core.ConfigMap:
		m.configs[object.Name] = true
	case *networking.NetworkPolicy:
		m.selectors[name] = &object.Spec.PodSelector
	case *policy.PodDisruptionBudget:
		m.selectors[name] = object.Spec.Selector
	case *monitoring.ServiceMonitor:
		m.monitor(name, object)
	}
}

func (m *manifests) label(name, key, value string) {
	for _, reason := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
		m.problem("%s: label %s=%s: %s", name, key, value, reason)
	}
}

func (m *manifests) workload(name string, selector *meta.LabelSelector, template *core.PodTemplateSpec) {
	m.pods[name] = template.Labels
	m.ports[name] = map[string]bool{}
	if selector == nil || !matches(selector, template.Labels) {
		m.problem("%s: its selector does not match its pods", name)
	}
	for key, value := range template.Labels {
		m.label(name, key, value)
	}
	volumes := map[string]bool{}
	for _, volume := range template.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil {
			m.references[volume.ConfigMap.Name] = name
		}
	}
	containers := template.Spec.Containers
	for _, container := range append(template.Spec.InitContainers, containers...) {
		m.container(name+", container "+container.Name, &container, volumes)
	}
	for _, container := range containers {
		for _, port := range container.Ports {
			m.ports[name][port.Name] = true
			for _, reason := range validation.IsValidPortName(port.Name) {
				m.problem("%s: port %s: %s", name, port.Name, reason)
			}
		}
		if container.LivenessProbe == nil || container.StartupProbe == nil {
			m.problem("%s: container %s lacks probes", name, container.Name)
		}
		for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			if probe == nil {
				continue
			}
			port := ""
			if probe.HTTPGet != nil {
				port = probe.HTTPGet.Port.StrVal
			} else if probe.TCPSocket != nil {
				port = probe.TCPSocket.Port.StrVal
			}
			if !m.ports[name][port] {
				m.problem("%s: container %s is probed at port %q, which it does not have", name, container.Name, port)
			}
		}
	}
}

func (m *manifests) container(name string, container *core.Container, volumes map[string]bool) {
	security := container.SecurityContext
	switch {
	case security == nil:
		m.problem("%s has no security context", name)
	case security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation:
		m.problem("%s may escalate privileges", name)
	case security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem:
		m.problem("%s may write its root file system", name)
	case security.Capabilities == nil || len(security.Capabilities.Drop) != 1 || security.Capabilities.Drop[0] != "ALL":
		m.problem("%s keeps capabilities", name)
	case len(security.Capabilities.Add) > 0:
		m.problem("%s adds capabilities %v", name, security.Capabilities.Add)
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
		m.problem("%s has no limit of memory or no request of CPU", name)
	}
	environment := map[string]bool{}
	for _, each := range container.Env {
		environment[each.Name] = true
	}
	for _, argument := range container.Args {
		for _, match := range variable.FindAllStringSubmatch(argument, -1) {
			if !environment[match[1]] {
				m.problem("%s: argument %q uses a variable that it does not have", name, argument)
			}
		}
	}
	for _, mount := range container.VolumeMounts {
		if !volumes[mount.Name] {
			m.problem("%s mounts %s, which is no volume", name, mount.Name)
		}
	}
}

// checkSelectors checks that each selector finds pods, and each service and monitor its ports.
func (m *manifests) checkSelectors() {
	for name, selector := range m.selectors {
		if len(m.selected(selector)) == 0 {
			m.problem("%s selects no pods", name)
		}
	}
	for name, service := range m.services {
		pods := m.selected(&meta.LabelSelector{MatchLabels: service.Spec.Selector})
		if len(pods) != 1 {
			m.problem("%s selects the pods of %d workloads", name, len(pods))
		}
		for _, port := range service.Spec.Ports {
			for _, workload := range pods {
				if !m.ports[workload][port.TargetPort.StrVal] {
					m.problem("%s: %s has no port %q", name, workload, port.TargetPort.StrVal)
				}
			}
		}
	}
}

// selected returns the workloads with pods that a selector selects.
func (m *manifests) selected(selector *meta.LabelSelector) []string {
	var names []string
	for name, pods := range m.pods {
		if matches(selector, pods) {
			names = append(names, name)
		}
	}
	return names
}

// monitor checks that the services of a monitor have its ports. Services are decoded before monitors.
func (m *manifests) monitor(name string, monitor *monitoring.ServiceMonitor) {
	for _, endpoint := range monitor.Spec.Endpoints {
		found := false
		for _, service := range m.services {
			for _, port := range service.Spec.Ports {
				found = found || matches(&monitor.Spec.Selector, service.Labels) && port.Name == endpoint.Port
			}
		}
		if !found {
			m.problem("%s: no service has the port %q", name, endpoint.Port)
		}
	}
}

func matches(selector *meta.LabelSelector, set map[string]string) bool {
	compiled, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && !compiled.Empty() && compiled.Matches(labels.Set(set))
}
