// Character devices with the majors and names of NVIDIA's driver, that can be opened and nothing
// more: whether a service may open a card is decided before a driver is asked. And what the driver
// says of its cards below /proc/driver/nvidia/gpus.
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#define CARDS 195 // NVIDIA's own; the others are given by the kernel, as with the real driver

static char *cards = "nvidia"; // drivers before 550.40 say "nvidia-frontend"
module_param(cards, charp, 0444);
static unsigned int count = 3;
module_param(count, uint, 0444);
static int uvm;
static int caps;
static struct proc_dir_entry *folder;

static ssize_t nothing(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = nothing,
};

static int information(struct seq_file *file, void *unused)
{
	unsigned long card = (unsigned long)file->private;

	seq_puts(file, "Model: \t\t NVIDIA H100 80GB HBM3\n");
	seq_printf(file, "IRQ:   \t\t %lu\n", 100 + card);
	seq_printf(file, "GPU UUID: \t GPU-00000000-0000-4000-8000-%012lu\n", card);
	seq_printf(file, "Bus Location: \t 0000:%02lx:00.0\n", 0x10 + card);
	seq_printf(file, "Device Minor: \t %lu\n", card);
	return 0;
}

static void list(void)
{
	struct proc_dir_entry *gpus;
	unsigned long card;
	char name[16];

	folder = proc_mkdir("driver/nvidia", NULL);
	gpus = proc_mkdir("gpus", folder);
	for (card = 0; card < count; card++) {
		struct proc_dir_entry *own;

		snprintf(name, sizeof(name), "0000:%02lx:00.0", 0x10 + card);
		own = proc_mkdir(name, gpus);
		proc_create_single_data("information", 0444, own, information, (void *)card);
	}
}

static int __init begin(void)
{
	int failed = register_chrdev(CARDS, cards, &operations);

	if (failed < 0)
		return failed;
	uvm = register_chrdev(0, "nvidia-uvm", &operations);
	if (uvm < 0) {
		unregister_chrdev(CARDS, cards);
		return uvm;
	}
	caps = register_chrdev(0, "nvidia-caps", &operations);
	if (caps < 0) {
		unregister_chrdev(uvm, "nvidia-uvm");
		unregister_chrdev(CARDS, cards);
		return caps;
	}
	list();
	return 0;
}

static void __exit end(void)
{
	proc_remove(folder);
	unregister_chrdev(caps, "nvidia-caps");
	unregister_chrdev(uvm, "nvidia-uvm");
	unregister_chrdev(CARDS, cards);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("The device numbers of NVIDIA's driver, for tests");
MODULE_LICENSE("GPL");
