// Character devices with NVIDIA's major and names, that can be opened and nothing more: whether a
// service may open a card is decided before a driver is asked. And what the driver says of itself
// and of its cards below /proc/driver/nvidia; the cards are those of cards.c.
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#define MAJOR_OF_CARDS 195 // NVIDIA's own; the others are given by the kernel, as with the real driver
#define DRIVER "550.54.15"

static int caps;
static struct proc_dir_entry *folder, *gpus;

static ssize_t nothing(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = nothing,
};

static int version(struct seq_file *file, void *unused)
{
	seq_puts(file, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " DRIVER
		       "  Release Build  (tests)\n");
	return 0;
}

static int information(struct seq_file *file, void *unused)
{
	struct pci_dev *card = file->private;

	seq_puts(file, "Model: \t\t NVIDIA H100 80GB HBM3\n");
	seq_printf(file, "IRQ:   \t\t %u\n", card->irq);
	seq_printf(file, "GPU UUID: \t GPU-00000000-0000-4000-8000-%012u\n", PCI_SLOT(card->devfn));
	seq_printf(file, "Bus Location: \t %s\n", pci_name(card));
	seq_printf(file, "Device Minor: \t %u\n", PCI_SLOT(card->devfn));
	return 0;
}

static int take(struct pci_dev *card, const struct pci_device_id *id)
{
	struct proc_dir_entry *own = proc_mkdir(pci_name(card), gpus);

	proc_create_single_data("information", 0444, own, information, card);
	return 0;
}

static void leave(struct pci_dev *card)
{
	remove_proc_subtree(pci_name(card), gpus);
}

static const struct pci_device_id cards[] = { { PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID) }, {} };

static struct pci_driver driver = {
	.name = "nvidia",
	.id_table = cards,
	.probe = take,
	.remove = leave,
};

static int __init begin(void)
{
	int failed = register_chrdev(MAJOR_OF_CARDS, "nvidia", &operations);

	if (failed < 0)
		return failed;
	caps = register_chrdev(0, "nvidia-caps", &operations);
	if (caps < 0) {
		failed = caps;
		goto no_caps;
	}
	folder = proc_mkdir("driver/nvidia", NULL);
	gpus = proc_mkdir("gpus", folder);
	proc_create_single("version", 0444, folder, version);
	failed = pci_register_driver(&driver);
	if (!failed)
		return 0;
	proc_remove(folder);
	unregister_chrdev(caps, "nvidia-caps");
no_caps:
	unregister_chrdev(MAJOR_OF_CARDS, "nvidia");
	return failed;
}

static void __exit end(void)
{
	pci_unregister_driver(&driver);
	proc_remove(folder);
	unregister_chrdev(caps, "nvidia-caps");
	unregister_chrdev(MAJOR_OF_CARDS, "nvidia");
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("The device numbers of NVIDIA's driver, for tests");
MODULE_VERSION(DRIVER);
MODULE_LICENSE("GPL");
