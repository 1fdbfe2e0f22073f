#include "compiler/machine/machine.h"
#include "test/catch.h"
#include "test/topology/import.h"

namespace ff {
namespace {

std::string gpu(const std::string& bus, int dev, const std::string& inside,
                const std::string& speed = "16.0 GT/s PCIe", const std::string& width = "16") {
  return "<pci busid=\"" + bus + "\" class=\"0x030200\" device=\"0x20b0\" link_speed=\"" + speed +
         "\" link_width=\"" + width + "\"><gpu dev=\"" + std::to_string(dev) + "\" sm=\"80\" rank=\"" +
         std::to_string(dev) + "\" gdr=\"1\">" + inside + "</gpu></pci>";
}

std::string nvlink(const std::string& target, int count, const std::string& tclass) {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" + tclass +
         "\"/>";
}

std::string net(const std::string& name, int speed, const std::string& guid) {
  return "<net name=\"" + name + "\" speed=\"" + std::to_string(speed) + "\" guid=\"" + guid + "\"/>";
}

std::string card(const std::string& bus, const std::string& nets, const std::string& width = "16") {
  return "<pci busid=\"" + bus + "\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"" + width +
         "\"><nic>" + nets + "</nic></pci>";
}

std::string bridge(const std::string& bus, const std::string& inside,
                   const std::string& speed = "16.0 GT/s PCIe", const std::string& width = "16") {
  return "<pci busid=\"" + bus + "\" class=\"0x060400\" link_speed=\"" + speed + "\" link_width=\"" + width +
         "\">" + inside + "</pci>";
}

std::string cpu(int numa, const std::string& inside) {
  return "<cpu numaid=\"" + std::to_string(numa) + "\" vendor=\"AuthenticAMD\" modelid=\"49\">" + inside +
         "</cpu>";
}

std::string dump(const std::string& inside) { return "<system version=\"1\">" + inside + "</system>"; }

TEST_CASE("a bridge of four NVLinks joins two GPUs of a host that does not know its NUMA nodes") {
  const Read read(dump(cpu(-1, gpu("0000:07:00.0", 0, nvlink("0000:08:00.0", 4, "0x030000")) +
                                   gpu("0000:08:00.0", 1, nvlink("0000:07:00.0", 4, "0x030000")) + "<nic>" +
                                   net("eno1", 10000, "0x0") + "</nic>")));
  CHECK(read.fact("GPUs") == "2 (a100)");
  CHECK(read.fact("NUMA nodes") == "unknown: the input does not say");
  CHECK(read.fact("NICs") == "1: 1 x 10 Gbit/s (eno1)");
  CHECK(read.fact("link GPU0-GPU1") == "NV4");
  CHECK(read.fact("NVLinks of GPU0") == "4");
  CHECK(read.bandwidth(0, 1) == Approx(4 * 25e9));
}

TEST_CASE("GPUs without a link between them go by PCIe though others have NVLinks") {
  const Read read(
      dump(cpu(0, bridge("0000:03:00.0", gpu("0000:06:00.0", 0, nvlink("0000:85:00.0", 2, "0x030200")) +
                                             gpu("0000:07:00.0", 1, ""))) +
           cpu(1, gpu("0000:85:00.0", 2, nvlink("0000:06:00.0", 2, "0x030200")))));
  CHECK(read.fact("link GPU0-GPU1") == "PIX (one PCIe switch)");
  CHECK(read.fact("NUMA nodes") == "2 (0, 1; of the GPUs: 0, 0, 1)");
  CHECK(read.bandwidth(0, 2) == Approx(50e9));
  CHECK(read.bandwidth(0, 1) == Approx(pcie_bandwidth(16, 16)));
  CHECK(read.bandwidth(1, 2) == Approx(16e9));  // from socket to socket
}

TEST_CASE("NVLinks to switches are one fabric, also for the GPU that sees it under one hidden name") {
  const std::string two = nvlink("0000:f3:00.0", 6, "0x068000") + nvlink("0000:f4:00.0", 6, "0x068000");
  const Read read(dump(cpu(0, gpu("0000:a1:00.0", 0, two) + gpu("0000:a2:00.0", 1, two) +
                                  gpu("0000:a3:00.0", 2, nvlink("fffffff:ff:ff.0", 12, "0x068000")))));
  CHECK(read.fact("link GPU0-GPU1") == "NV12, by NVSwitch");
  CHECK(read.fact("NVLinks of GPU0") == "12");
  CHECK(read.fact("note") ==
        "GPU2 sees 1 NVLink target(s), other GPUs other numbers: taken for the same fabric");
  CHECK(read.bandwidth(0, 1) == Approx(300e9));
  CHECK(read.bandwidth(1, 2) == Approx(300e9));
}

TEST_CASE("PCIe speeds that virtual machines make up are not believed") {
  const Read read(dump(cpu(0, bridge("0000:a1:00.0",
                                     gpu("0000:a4:00.0", 0, "", "32.0 GT/s PCIe", "0") +
                                         gpu("0000:a5:00.0", 1, "", "32.0 GT/s PCIe", "0"),
                                     "2.5 GT/s PCIe", "1"))));
  CHECK(read.bandwidth(0, 1) == Approx(pcie_bandwidth(32, 16)));
  CHECK(read.fact("note").find("virtual machine") != std::string::npos);
}

TEST_CASE("bridges of containers are no network, however fast they say they are") {
  const Read read(
      dump(cpu(0, gpu("0000:3b:00.0", 0, "") + card("0000:18:00.0", net("eno1", 1000, "0x0")) + "<nic>" +
                      net("br-0123", 10000, "0x1") + net("veth77", 10000, "0x2") + "</nic>")));
  CHECK(read.fact("NICs") == "1: 1 x 1 Gbit/s (eno1); left out, as virtual: br-0123, veth77");
  CHECK(read.fact("link GPU0-GPU1") == "none, there is one GPU");
  CHECK(read.machine_of(":nodes=2").route(DeviceId(0), DeviceId(1)).bandwidth == Approx(0.125e9));
}

TEST_CASE("no route between nodes is faster than a network card") {
  const std::string fabric = nvlink("0000:f3:00.0", 12, "0x068000");
  std::string gpus, cards;
  for (int i = 0; i < 4; ++i) {
    gpus += gpu("0000:1" + std::to_string(i) + ":00.0", i, fabric);
    cards += card("0000:2" + std::to_string(i) + ":00.0", net("mlx5_" + std::to_string(i), 100000, "0x1"));
  }
  const Machine machine = Read(dump(cpu(0, gpus + cards))).machine_of(":nodes=2");
  CHECK(machine.num_devices() == 8);
  for (int a = 0; a < 4; ++a) {
    for (int b = 4; b < 8; ++b) CHECK(machine.route(DeviceId(a), DeviceId(b)).bandwidth == Approx(12.5e9));
  }
  CHECK(machine.route(DeviceId(0), DeviceId(1)).bandwidth == Approx(300e9));
}

TEST_CASE("two ports of a card share its slot") {
  const Read read(
      dump(cpu(3, gpu("0000:01:00.0", 0, "") +
                      card("0000:02:00.0", net("a", 100000, "0x7") + net("b", 100000, "0x7"), "8")) +
           cpu(2, gpu("0000:46:00.0", 1, ""))));
  CHECK(read.fact("NICs") == "2: 2 x 100 Gbit/s (a, b)");
  CHECK(read.fact("NUMA nodes") == "2 (3, 2; of the GPUs: 3, 2)");
  CHECK(read.fact("link GPU0-GPU1") == "SYS (from socket to socket)");
  const Machine machine = read.machine_of(":nodes=2");
  CHECK(machine.route(DeviceId(0), DeviceId(2)).bandwidth == Approx(pcie_bandwidth(16, 8)));
}

TEST_CASE("two levels of PCIe switches on both sockets leave a route between any two GPUs") {
  std::string sockets;
  int dev = 0;
  for (int s = 0; s < 2; ++s) {
    std::string pairs;
    for (int p = 0; p < 2; ++p) {
      const std::string bus = std::to_string(s) + std::to_string(p);
      const int first = dev++, second = dev++;
      pairs += bridge("0001:" + bus + ":00.0",
                      gpu("0002:" + bus + ":00.0", first, "") + gpu("0003:" + bus + ":00.0", second, ""));
    }
    sockets += cpu(s, bridge("0000:0" + std::to_string(s) + ":00.0", pairs));
  }
  const Read read(dump(sockets));
  CHECK(read.fact("link GPU0-GPU1") == "PIX (one PCIe switch)");
  CHECK(read.machine_of("").num_devices() == 8);
}

TEST_CASE("GPUs are numbered by device, whatever NCCL's ranks are") {
  std::string text =
      dump(cpu(0, gpu("0000:10:00.0", 2, "") + gpu("0000:11:00.0", 0, nvlink("0000:12:00.0", 2, "0x03")) +
                      gpu("0000:12:00.0", 1, "")));
  const Read read(text);
  CHECK(read.fact("link GPU0-GPU1") == "NV2");
}

TEST_CASE("parts of one device share it, and its links are counted once") {
  const std::string part = "<nvlink target=\"fffffff:ff:ff.0\" count=\"36\" tclass=\"0x068000\"/>";
  const Read read(
      "<pci busid=\"0002:81:00.0\" class=\"0x030200\" device=\"0x307f\" link_speed=\"64.0 GT/s PCIe\" "
      "link_width=\"2\">"
      "<gpu dev=\"0\" rank=\"0\">" +
      part + "</gpu><gpu dev=\"0\" rank=\"1\">" + part + "</gpu></pci>");
  CHECK(read.fact("GPUs") == "2 logical, 1 physical (vr200)");
  CHECK(read.fact("link GPU0-GPU1") == "the same chip");
  CHECK(read.fact("NVLinks of GPU0") == "36");
  const Machine machine = read.machine_of("");
  CHECK(machine.kinds()[0].memory_bytes == int64_t{144} << 30);
  double to_switch = 0;
  for (const Link& link : machine.links()) {
    if (link.name.find(">nvswitch") != std::string::npos) to_switch += link.bandwidth;
  }
  CHECK(to_switch == Approx(36 * 50e9));
}

TEST_CASE("what the dump does not say is said to be assumed, or given by a flag") {
  const std::string text =
      dump(cpu(0,
               "<pci busid=\"0000:10:00.0\" class=\"0x030200\" device=\"0xabcd\"><gpu dev=\"0\"/>"
               "</pci><nic><net name=\"bond0\" dev=\"0\"/></nic>"));
  const Read guessed(text);
  CHECK(guessed.fact("GPUs") == "1 (a100, assumed)");
  CHECK(guessed.fact("NICs") == "1: 1 x unknown speed (bond0)");
  const Read told(text, {"h100", 400});
  CHECK(told.fact("GPUs") == "1 (h100)");
  CHECK(told.machine_of(":nodes=2").route(DeviceId(0), DeviceId(1)).bandwidth ==
        Approx(44e9));  // its PCIe slot
}

}  // namespace
}  // namespace ff
