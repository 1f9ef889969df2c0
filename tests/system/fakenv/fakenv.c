// Character devices with the majors and names of NVIDIA's driver, that can be opened and nothing
// more: whether a service may open a card is decided before a driver is asked.
#include <linux/fs.h>
#include <linux/module.h>

#define CARDS 195 // NVIDIA's own; the others are given by the kernel, as with the real driver

static char *cards = "nvidia"; // drivers before 550.40 say "nvidia-frontend"
module_param(cards, charp, 0444);
static int uvm;
static int caps;

static ssize_t nothing(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = nothing,
};

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
	return 0;
}

static void __exit end(void)
{
	unregister_chrdev(caps, "nvidia-caps");
	unregister_chrdev(uvm, "nvidia-uvm");
	unregister_chrdev(CARDS, cards);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("The device numbers of NVIDIA's driver, for tests");
MODULE_LICENSE("GPL");
