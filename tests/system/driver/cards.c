// A PCI bus with three cards of NVIDIA's that are nothing but their numbers: 0000:10:00.0 to
// 0000:10:02.0. They are there from the boot on, whether the driver is loaded or not.
#include <linux/module.h>
#include <linux/pci.h>

#define CARDS 3
#define BUS 0x10
#define H100_SXM5 0x2330
#define REVISION 0xa1

static struct pci_bus *bus;
static struct pci_sysdata place = { .domain = 0, .node = 0 };
static struct resource numbers = {
	.name = "cards",
	.start = BUS,
	.end = BUS,
	.flags = IORESOURCE_BUS,
};

static u32 word(int at)
{
	switch (at) {
	case PCI_VENDOR_ID:
		return PCI_VENDOR_ID_NVIDIA | H100_SXM5 << 16;
	case PCI_CLASS_REVISION:
		return PCI_CLASS_DISPLAY_3D << 16 | REVISION;
	default:
		return 0;
	}
}

static int get(struct pci_bus *of, unsigned int function, int at, int size, u32 *value)
{
	if (PCI_SLOT(function) >= CARDS || PCI_FUNC(function)) {
		PCI_SET_ERROR_RESPONSE(value);
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*value = word(at & ~3) >> (at & 3) * 8;
	if (size < 4)
		*value &= (1u << size * 8) - 1;
	return PCIBIOS_SUCCESSFUL;
}

static int set(struct pci_bus *of, unsigned int function, int at, int size, u32 value)
{
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = { .read = get, .write = set };

static int __init begin(void)
{
	LIST_HEAD(resources);

	pci_add_resource(&resources, &numbers);
	pci_lock_rescan_remove();
	bus = pci_scan_root_bus(NULL, BUS, &operations, &place, &resources);
	if (bus)
		pci_bus_add_devices(bus);
	pci_unlock_rescan_remove();
	return bus ? 0 : -ENOMEM;
}

static void __exit end(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(bus);
	pci_remove_root_bus(bus);
	pci_unlock_rescan_remove();
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("Three cards of NVIDIA's on a PCI bus, for tests");
MODULE_LICENSE("GPL");
