"""The chart dist/helm/nuthatch and what it makes: dist/kubernetes/nuthatch.yaml, and with other values."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
from deploy import ROOT, VERSION, accepts, suffices, value

yaml = pytest.importorskip("yaml")

CHART = ROOT / "dist/helm/nuthatch"
MADE = ROOT / "dist/kubernetes/nuthatch.yaml"
# The Kubernetes that all is made for and judged by; Chart.yaml says the oldest.
SCHEMAS = "1.33"

with_helm = pytest.mark.skipif(not shutil.which("helm"), reason="no helm (scripts/setup-deploy.sh)")

PERSISTENT = ("--set", "kind=StatefulSet,persistence.enabled=true,replicas=3")
SECURED = ("--set", "auth.secret=users,tls.secret=certificate,networkPolicy.enabled=true,serviceMonitor.enabled=true")
VARIANTS = {
    "as it is": (),
    "small": ("--set", "memory=1,redis.enabled=false,podDisruptionBudget.enabled=false"),
    "large": ("--set", "memory=100000,threads=16,connections=20000,extraArgs={-o,idle_timeout=60}"),
    "scripts": ("--set", "memory=64,threads=16,lua=true"),
    "pods with names": ("--set", "kind=StatefulSet,replicas=2"),
    "persistent": PERSISTENT,
    "secured": SECURED,
    "all": (*PERSISTENT, *SECURED),
}


def helm(*words):
    return subprocess.run(["helm", *words], capture_output=True, text=True, check=False)


def template(*values, name="nuthatch"):
    made = helm("template", name, str(CHART), "--namespace", "default", "--kube-version", SCHEMAS, *values)
    assert made.returncode == 0, made.stderr
    return made.stdout


def objects(text):
    return [found for found in yaml.load_all(text, Loader=Once) if found]


class Once(yaml.SafeLoader):
    """A key that stands there twice is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep=deep)


def pod_of(made):
    (workload,) = [found for found in made if found["kind"] in ("Deployment", "StatefulSet")]
    return workload["spec"]["template"]


def judge_schemas(made):
    """By the schemas of Kubernetes' own interface, as far as they are here."""
    validate = pytest.importorskip("kubernetes_validate", reason="no kubernetes-validate (scripts/setup-deploy.sh)")
    for found in made:
        # Of the Prometheus operator.
        if found["kind"] != "ServiceMonitor":
            validate.validate(found, SCHEMAS, strict=True)


def judge(made, folder):
    """What is asked of all, whatever the values."""
    pod = pod_of(made)
    (container,) = pod["spec"]["containers"]
    words = container["args"]
    assert all(isinstance(word, str) for word in words), words
    accepts(words, folder)
    limit = container["resources"]["limits"]["memory"]
    suffices(int(limit.removesuffix("Mi")), words)
    assert container["resources"]["requests"]["memory"] == limit
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    security = pod["spec"]["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == 65532 and not pod["spec"]["automountServiceAccountToken"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["metrics"] == int(value(words, "--metrics").split(":")[1]) and ports["memcached"] == 11211
    assert ("redis" in ports) == ("--redis-port" in words)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    # What it mounts is there, and each file that a flag names lies in what it mounts.
    names = {volume["name"] for volume in pod["spec"]["volumes"] or []}
    for found in made:
        names |= {claim["metadata"]["name"] for claim in found["spec"].get("volumeClaimTemplates", [])} if "spec" in found else set()
    assert {mount["name"] for mount in container["volumeMounts"]} == names
    mounted = tuple(mount["mountPath"] for mount in container["volumeMounts"])
    assert all(path.startswith(mounted) for word in words for path in re.findall(r"(?:^|=)(/[^,]+)", word)), words
    judge_selectors(made, pod["metadata"]["labels"], ports)


def judge_selectors(made, labels, ports):
    """Services, budgets and policies find the pods, and a port by its name."""
    for found in made:
        spec = found.get("spec", {})
        selectors = {
            "Service": lambda: spec["selector"],
            "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"],
            "Deployment": lambda: spec["selector"]["matchLabels"],
            "StatefulSet": lambda: spec["selector"]["matchLabels"],
        }
        if found["kind"] in selectors:
            assert selectors[found["kind"]]().items() <= labels.items(), found
        if found["kind"] == "Service":
            assert {port["targetPort"] for port in spec["ports"]} <= set(ports)
        if found["kind"] == "StatefulSet":
            assert spec["serviceName"] in [other["metadata"]["name"] for other in made if other["kind"] == "Service"]
        if found["kind"] == "ServiceMonitor":
            wanted = spec["selector"]["matchLabels"].items()
            services = [other for other in made if other["kind"] == "Service" and wanted <= other["metadata"]["labels"].items()]
            assert len(services) == 1 and "metrics" in [port["name"] for port in services[0]["spec"]["ports"]]


def test_the_manifests_are_sound(tmp_path):
    made = objects(MADE.read_text())
    assert {found["kind"] for found in made} == {"ServiceAccount", "Service", "Deployment", "PodDisruptionBudget"}
    assert pod_of(made)["spec"]["containers"][0]["image"] == f"nuthatch:{VERSION}"
    judge(made, tmp_path)


def test_the_manifests_have_the_form_that_kubernetes_wants():
    judge_schemas(objects(MADE.read_text()))


def test_the_chart_says_the_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == VERSION


def test_the_schema_knows_each_value():
    def compare(values, schema, path):
        properties = schema.get("properties")
        if isinstance(values, dict) and properties is not None:
            assert set(values) <= set(properties), path
            for name, inner in values.items():
                compare(inner, properties[name], f"{path}.{name}")

    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    compare(values, schema, "")
    assert set(schema["properties"]) - set(values) == {"global", "nameOverride", "fullnameOverride"}
    used = " ".join(file.read_text() for file in (CHART / "templates").rglob("*.*"))
    assert [name for name in values if f".Values.{name}" not in used] == []


@with_helm
def test_the_manifests_are_those_of_the_chart(tmp_path):
    subprocess.run([ROOT / "scripts/kubernetes-manifests.sh", tmp_path / "made"], check=True)
    assert (tmp_path / "made").read_text() == MADE.read_text(), "scripts/kubernetes-manifests.sh writes them"


@with_helm
@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_chart_with_other_values(values, tmp_path):
    linted = helm("lint", "--strict", "--kube-version", SCHEMAS, str(CHART), *values)
    assert linted.returncode == 0, linted.stdout
    made = objects(template(*values))
    tried = [found for found in made if "helm.sh/hook" in found["metadata"].get("annotations", {})]
    made = [found for found in made if found not in tried]
    assert len(tried) == 1 and tried[0]["spec"]["containers"][0]["args"][0] == "ping"
    if "-Z" in pod_of(made)["spec"]["containers"][0]["args"]:
        certificate(tmp_path)
    judge(made, tmp_path)
    judge_schemas(made + tried)


@with_helm
def test_values_that_cannot_be_are_refused():
    for values, words in [
        ("kind=DaemonSet", "kind"),
        ("memory=some", "memory"),
        ("memroy=1", "memroy"),
        ("lua=much", "lua"),
        ("persistence.enabled=true", "persistence needs kind=StatefulSet"),
        ("serviceMonitor.enabled=true,service.type=NodePort", "serviceMonitor needs"),
    ]:
        refused = helm("template", "nuthatch", str(CHART), "--kube-version", SCHEMAS, "--set", values)
        assert refused.returncode != 0 and words in refused.stderr, (values, refused.stderr)


def certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=cache"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([*command, *files], capture_output=True, check=True)


@pytest.mark.skipif(not shutil.which("kubeconform"), reason="no kubeconform (scripts/setup-deploy.sh)")
def test_kubeconform_takes_the_manifests(tmp_path):
    """By the schemas of kubernetes-validate, because its own lie behind the network; each with what it refers to inside."""
    package = pytest.importorskip("kubernetes_validate", reason="no kubernetes-validate (scripts/setup-deploy.sh)")
    folder = pathlib.Path(*package.__path__) / f"kubernetes-json-schema/v{SCHEMAS}.0-local-strict"

    def read(name):
        return json.loads((folder / f"{name}.json").read_text().replace('"/api/_definitions.json#/', '"#/'))

    shared = read("_definitions")
    for name in ("deployment-apps-v1", "service-v1", "serviceaccount-v1", "poddisruptionbudget-policy-v1"):
        (tmp_path / f"{name}.json").write_text(json.dumps({**shared, **read(name)}))
    schemas = f"{tmp_path}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = ["kubeconform", "-strict", "-summary", "-schema-location", schemas, str(MADE)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "Valid: 4" in ended.stdout, ended.stdout + ended.stderr
